"""The fabric of a node: the part of the family that reads no device."""
