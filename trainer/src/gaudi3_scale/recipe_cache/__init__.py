"""Compiled graphs that outlive a node: the folder of PT_HPU_RECIPE_CACHE_CONFIG, packed, signed and taken again.

What the bridge writes into that folder is not published, so its files are bytes here: none is opened, changed or
judged. Whether a packed folder saves the compiling on another node is known only once one was tried (hardware-status).
"""
