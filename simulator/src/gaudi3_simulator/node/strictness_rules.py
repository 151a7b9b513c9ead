"""The rules and their defaults."""

# Written by `make strictness`; edit simulator/strictness.yml instead.

RULES: dict[str, bool] = {}
