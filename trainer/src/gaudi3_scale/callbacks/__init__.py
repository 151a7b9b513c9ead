"""What happens around the training step: one observable concern per module."""
