"""Cards of the PCI bus: the part of the family that reads no device."""
