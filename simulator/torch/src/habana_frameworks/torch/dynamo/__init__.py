"""torch.compile for Gaudi: see `compile_backend`. The device's interface is registered when something is compiled."""
