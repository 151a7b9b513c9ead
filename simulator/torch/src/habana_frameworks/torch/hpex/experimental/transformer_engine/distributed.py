"""Checkpointing of activations in fp8: refused."""

from gaudi3_hpu_simulator.errors import refusing

activation_checkpointing = refusing("fp8 (activation_checkpointing)", "use torch.utils.checkpoint, or run on hardware")
