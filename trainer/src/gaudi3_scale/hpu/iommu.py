"""Whether the IOMMU passes the addresses of a Gaudi card through; `selfcheck` says what happens where it does not."""

from __future__ import annotations

import os

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.pci import iommu_domains

PASSTHROUGH = "identity"
ACCEPT_TRANSLATED = "GAUDI3_ACCEPT_TRANSLATED_IOMMU"


def check_iommu() -> None:
    """ConfigError where a card is in an IOMMU domain that translates; no group at all, as in a VM, is well.

    The variable `GAUDI3_ACCEPT_TRANSLATED_IOMMU=1` accepts such a domain; the numbers are compared anyway.
    """
    if os.environ.get(ACCEPT_TRANSLATED) == "1":
        return
    found = {card: kind for card, kind in iommu_domains().items() if kind != PASSTHROUGH}
    if found:
        card, kind = next(iter(found.items()))
        raise ConfigError(
            f"{len(found)} Gaudi card(s), the first at {card}, are in an IOMMU domain of type {kind!r}, in which they "
            "may compute wrong numbers or bring the kernel down: start the kernel with iommu=pt (and intel_iommu=on on "
            f"Intel's processors), or set {ACCEPT_TRANSLATED}=1 to train anyway."
        )
