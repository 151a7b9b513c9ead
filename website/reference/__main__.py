"""Writes the schemas that are committed: `python -m website.reference`."""

from website.reference.schemas import write

write()
