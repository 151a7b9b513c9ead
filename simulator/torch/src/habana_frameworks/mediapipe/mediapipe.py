"""A pipeline: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

MediaPipe = refusing_class("media pipeline (MediaPipe)", "load images with torchvision, or run on hardware")
