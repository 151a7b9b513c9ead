"""Data sets of Habana's loader: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

ImageFolderWithManifest = refusing_class(
    "data set with a manifest (ImageFolderWithManifest)", "use torchvision.datasets.ImageFolder, or run on hardware"
)
