"""A part of Habana's loader: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

HabanaAeonTransforms = refusing_class(
    "HabanaAeonTransforms of habana_dataloader", "use torch.utils.data.DataLoader, or run on hardware"
)
