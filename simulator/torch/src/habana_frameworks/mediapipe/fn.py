"""Steps of a pipeline: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

_INSTEAD = "load images with torchvision, or run on hardware"

CocoReader = refusing_class("media pipeline (CocoReader)", _INSTEAD)
CoinFlip = refusing_class("media pipeline (CoinFlip)", _INSTEAD)
ColorSpaceConversion = refusing_class("media pipeline (ColorSpaceConversion)", _INSTEAD)
Constant = refusing_class("media pipeline (Constant)", _INSTEAD)
CropMirrorNorm = refusing_class("media pipeline (CropMirrorNorm)", _INSTEAD)
CropWindowGen = refusing_class("media pipeline (CropWindowGen)", _INSTEAD)
ImageDecoder = refusing_class("media pipeline (ImageDecoder)", _INSTEAD)
MediaConst = refusing_class("media pipeline (MediaConst)", _INSTEAD)
MediaFunc = refusing_class("media pipeline (MediaFunc)", _INSTEAD)
RandomFlip = refusing_class("media pipeline (RandomFlip)", _INSTEAD)
ReadImageDatasetFromDir = refusing_class("media pipeline (ReadImageDatasetFromDir)", _INSTEAD)
Reshape = refusing_class("media pipeline (Reshape)", _INSTEAD)
