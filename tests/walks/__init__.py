"""Walks through the documents: every command of a page, in its order, on the simulator, with what it prints compared."""
