"""A part of Habana's loader: refused."""

from gaudi3_hpu_simulator.errors import refusing

generate_aeon_manifest = refusing(
    "generate_aeon_manifest of habana_dataloader", "use torch.utils.data.DataLoader, or run on hardware"
)
