"""Distributed training on Intel Gaudi 3, and on CPU and CUDA with the same command.

Importing this package is light: torch, Lightning and transformers are imported by the modules that use them.
"""

__version__ = "0.1.0"
