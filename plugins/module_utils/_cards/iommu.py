# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether the IOMMU translates the addresses of Gaudi cards, which makes their results unreliable.

The driver gives the card's memory management unit DMA addresses as if they were physical ones; the two are equal in a
passthrough domain only (drivers/accel/habanalabs/gaudi3/gaudi3.c: the host keeps the page tables of the PCIe MMU).
Two field reports of Gaudi 2 with 1.24.1, on kernels 6.1 and 6.8, saw wrong numbers and a kernel panic with a translated
domain, and neither with passthrough. Nobody has published either for Gaudi 3.
"""

from __future__ import annotations

from collections.abc import Iterable

from .pci import PciCard

IDENTITY = "identity"


def translated(cards: Iterable[PciCard]) -> list[PciCard]:
    """The cards whose addresses are translated: all that have an IOMMU group, unless its type is ``identity``."""
    return [card for card in cards if card.iommu not in (None, IDENTITY)]


def problem(cards: Iterable[PciCard]) -> str | None:
    """Why the cards cannot be trusted, as the beginning of a sentence; None where they can.

    Ask before the driver is loaded and before each job: ``problem(pci.cards())``.
    """
    bad = translated(cards)
    if not bad:
        return None
    more = f" and {len(bad) - 1} more are" if len(bad) > 1 else " is"
    return (
        f"card {bad[0].bus_id}{more} behind an IOMMU that translates addresses (iommu_group/type is {bad[0].iommu}), "
        "which may make results wrong or stop the kernel"
    )
