"""The public address of ThroughputCallback."""

from gaudi3_scale.lazy import lazily

__getattr__ = lazily(__name__)
