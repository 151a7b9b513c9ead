"""Habana's GPU Migration Toolkit, which runs code for CUDA on Gaudi: refused, when it is imported."""

from gaudi3_hpu_simulator.errors import refuse

raise refuse(
    "GPU migration (habana_frameworks.torch.gpu_migration)",
    "take it and PT_HPU_GPU_MIGRATION out and write 'hpu' for 'cuda', or run on hardware",
)
