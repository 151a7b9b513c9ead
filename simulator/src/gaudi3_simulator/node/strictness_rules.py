"""The rules and their defaults."""

# Written by `make strictness`; edit simulator/strictness.yml instead.

RULES: dict[str, bool] = {
    "compile-eager-only": True,
    "graphs-lazy-only": True,
    "graphs-read-nothing": True,
    "lazy-no-sharding": True,
}
