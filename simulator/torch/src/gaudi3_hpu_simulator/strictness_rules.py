"""The rules and their defaults."""

# Written by `make strictness`; edit simulator/strictness.yml instead.

RULES: dict[str, bool] = {
    "hccl-no-timeouts": True,
    "hccl-error-texts": True,
    "hccl-reductions": True,
    "hccl-types": True,
    "hccl-operations": True,
    "hccl-reduces-in-float32": True,
}
