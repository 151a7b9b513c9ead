"""Walks through the documents: the commands of a page, in their order, with what they print compared."""
