"""Habana's loader of images, which decodes on the card: refused when one is made.

The names that lightning-Habana and Model-References import are here; the package itself is not public.
"""

from gaudi3_hpu_simulator.errors import refusing_class
from habana_dataloader import habana_dataset

__all__ = ["HabanaDataLoader", "habana_dataset"]

HabanaDataLoader = refusing_class("HabanaDataLoader", "use torch.utils.data.DataLoader, or run on hardware")
