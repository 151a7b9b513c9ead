"""The step: forward, backward, clip and optimizer in `module`, what stops it, and the evaluation between steps."""
