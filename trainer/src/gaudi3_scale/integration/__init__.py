"""What Lightning needs to know of Gaudi: accelerator, strategies, trainer."""
