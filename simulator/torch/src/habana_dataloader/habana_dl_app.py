"""A part of Habana's loader: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

HabanaAcceleratedPytorchDL = refusing_class(
    "HabanaAcceleratedPytorchDL of habana_dataloader", "use torch.utils.data.DataLoader, or run on hardware"
)
