"""The documentation site: `python -m website.build` makes it of docs/, the collection's documentation and the code."""
