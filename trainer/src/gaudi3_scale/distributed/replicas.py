"""How many copies of a model the processes can hold between them."""

from __future__ import annotations

from gaudi3_scale.errors import ConfigError


def check_replicas(replicas: int, processes: int, tensor: int = 1, name: str = "replicas") -> None:
    """Refuse copies that the processes cannot be divided into; `name` is that of the setting."""
    if replicas < 1 or processes % replicas:
        raise ConfigError(
            f"{name} is {replicas}, and there are {processes} process(es), which cannot be divided into that many "
            "groups of one size: give a divisor of their number."
        )
    if replicas > 1 and tensor > 1:
        raise ConfigError(
            f"{name} is {replicas} and tensor_parallel_size {tensor}: copies of shards and split matrices do not go "
            "together here, so set one of them to 1."
        )
