"""Programs that other people wrote for Gaudi, run unmodified on the simulated device and the simulated node."""
