"""A part of Habana's loader: refused."""

from gaudi3_hpu_simulator.errors import refusing

get_aeon_config = refusing(
    "get_aeon_config of habana_dataloader", "use torch.utils.data.DataLoader, or run on hardware"
)
