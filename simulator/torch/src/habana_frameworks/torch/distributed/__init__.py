"""Process groups of the simulated device: see `hccl`."""
