"""Iterators over a pipeline: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

_INSTEAD = "load images with torchvision, or run on hardware"

CPUHPUResnetPytorchIterator = refusing_class("media pipeline (CPUHPUResnetPytorchIterator)", _INSTEAD)
HPUGenericPytorchIterator = refusing_class("media pipeline (HPUGenericPytorchIterator)", _INSTEAD)
HPUResnetPytorchIterator = refusing_class("media pipeline (HPUResnetPytorchIterator)", _INSTEAD)
