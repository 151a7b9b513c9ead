"""What feeds torch from a pipeline."""
