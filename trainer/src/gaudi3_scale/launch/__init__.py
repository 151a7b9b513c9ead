"""torchrun that knows an interruption from a failure: `python -m gaudi3_scale.launch`."""
