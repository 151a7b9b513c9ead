"""The PCI configuration space of a card: what the real lspci decodes.

Layout after the PCI and PCI Express base specifications (names as in Linux' ``pci_regs.h``). Which capabilities a Gaudi
has besides power management, PCI Express and MSI-X, and the sizes of its memory regions, are UNCONFIRMED.
"""

from __future__ import annotations

_SIZE = 256
_POWER, _EXPRESS, _MSIX = 0x40, 0x70, 0xB0
_MEMORY_64_PREFETCHABLE = 0x14220C  # IORESOURCE flags of a 64-bit prefetchable memory region
_REGIONS = ((0, 1 << 29), (2, 1 << 20), (4, 1 << 37))


def regions(bus: int) -> list[tuple[int, int, int]]:
    """Start, end and flags of the thirteen resources, as the attribute ``resource`` lists them."""
    lines = [(0, 0, 0)] * 13
    start = 0x200000000000 + (bus << 40)
    for index, size in _REGIONS:
        start = (start + size - 1) // size * size
        lines[index] = (start, start + size - 1, _MEMORY_64_PREFETCHABLE)
        start += size
    return lines


def configuration(
    vendor: int,
    device: int,
    revision: int,
    bus: int,
    generation: tuple[int, int],
    width: tuple[int, int],
    enabled: bool,
) -> bytes:
    """The first 256 bytes: header and capability list; ``generation`` and ``width``: what the link can do and does."""
    space = bytearray(_SIZE)

    def put(offset: int, value: int, size: int) -> None:
        space[offset : offset + size] = value.to_bytes(size, "little")

    put(0x00, vendor, 2)
    put(0x02, device, 2)
    put(0x04, 0x0406 if enabled else 0x0002, 2)  # memory; with a driver bus master and no INTx
    put(0x06, 0x0010, 2)  # has a capability list
    put(0x08, revision, 1)
    put(0x0B, 0x12, 1)  # processing accelerator
    put(0x0C, 0x10, 1)
    for index, (start, _end, flags) in enumerate(regions(bus)[:6]):
        if flags:
            put(0x10 + 4 * index, start | 0xC, 8)
    put(0x2C, vendor, 2)
    put(0x2E, device, 2)
    put(0x34, _POWER, 1)

    put(_POWER, 0x01, 1)
    put(_POWER + 1, _EXPRESS, 1)
    put(_POWER + 2, 0x0003, 2)

    speed, current = generation  # the codes of the speeds are the numbers of the generations
    put(_EXPRESS, 0x10, 1)
    put(_EXPRESS + 1, _MSIX, 1)
    put(_EXPRESS + 2, 0x0002, 2)  # version 2, endpoint
    put(_EXPRESS + 0x04, 0x10008022, 4)
    put(_EXPRESS + 0x08, 0x2930, 2)
    put(_EXPRESS + 0x0C, speed | width[0] << 4, 4)
    put(_EXPRESS + 0x10, 0x0040, 2)
    put(_EXPRESS + 0x12, current | width[1] << 4 | 1 << 12, 2)
    put(_EXPRESS + 0x2C, (1 << (speed + 1)) - 2, 4)  # every speed up to the card's
    put(_EXPRESS + 0x30, speed, 2)
    put(_EXPRESS + 0x32, 0x001E, 2)

    put(_MSIX, 0x11, 1)
    put(_MSIX + 2, 0x00FF | (0x8000 if enabled else 0), 2)
    put(_MSIX + 4, 0x2, 4)  # table and pending bits in region 2
    put(_MSIX + 8, 0x2 | 0x8000, 4)
    return bytes(space)
