"""Fused operations: here compositions of torch's own, with the results of the same formulas and without their speed."""
