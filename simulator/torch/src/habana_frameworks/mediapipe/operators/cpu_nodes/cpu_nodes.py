"""Steps of one's own, in Python: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

media_function = refusing_class("media pipeline (media_function)", "load images with torchvision, or run on hardware")
