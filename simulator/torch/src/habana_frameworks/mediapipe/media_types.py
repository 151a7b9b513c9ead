"""Words for the steps of a pipeline. Their values are not public: compare the members."""

from enum import Enum, auto


class dtype(Enum):
    """Types of data."""

    FLOAT32 = auto()
    INT32 = auto()
    INT8 = auto()
    UINT32 = auto()
    UINT8 = auto()


class ftype(Enum):
    """Filters."""

    BICUBIC = auto()
    BI_LINEAR = auto()
    BOX = auto()
    LANCZOS = auto()
    NEAREST = auto()


class imgtype(Enum):
    """Layouts of colours."""

    RGB_P = auto()


class randomCropType(Enum):
    """Ways to crop."""

    RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP = auto()


class decoderStage(Enum):
    """Stages of the decoder."""

    ENABLE_ALL_STAGES = auto()
