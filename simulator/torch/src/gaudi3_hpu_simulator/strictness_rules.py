"""The rules and their defaults."""

# Written by `make strictness`; edit simulator/strictness.yml instead.

RULES: dict[str, bool] = {
    "index-is-zero": True,
    "card-has-one-holder": True,
    "module-chooses-card": True,
    "card-must-be-operational": True,
    "card-resets-after-unclean-death": False,
    "operations-need-kernel-path": False,
    "host-memory-bounds-card": True,
    "card-memory-is-drams": True,
}
