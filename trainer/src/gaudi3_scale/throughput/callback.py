"""The public address of ThroughputCallback."""

from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback, input_tokens

__all__ = ["ThroughputCallback", "input_tokens"]
