# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where the roles download from on a host: from those who publish it, or from the sealed mirror that is set."""

from __future__ import annotations

from collections.abc import Mapping

from .._mirror import addresses, mirror_address
from .given import fact
from .model import Values


def addresses_here(values: Values) -> Mapping[str, str]:
    """Addresses of the parts of a release, which the roles' defaults are."""
    return addresses(mirror_address(values("gaudi_mirror")), fact(values, "distribution_version"))


def decide_serving_index(values: Values) -> Mapping[str, str]:
    """Which indexes role serving takes vllm for a CPU and its torch from where nobody says otherwise."""
    where = addresses_here(values)
    return {"index_url": where["index"], "torch_index_url": where["torch"]}


def decide_grafana(values: Values) -> Mapping[str, str]:
    """Where role grafana takes its package from where nobody says otherwise."""
    where = addresses_here(values)
    return {"repository_url": where["grafana"], "key_url": where["grafana_key"]}
