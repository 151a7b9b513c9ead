"""Random digits in place of a download: as much of torchvision as the hello-world programs use."""

from . import datasets, transforms

__all__ = ["datasets", "transforms"]
