# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_serving does: a model behind one address, brought in by releases without losing an answer."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Optional

from .._host import listeners
from .._printable import printable
from .._refusal import Refusal
from .._serving import folder, releases, request, unit, versions
from .._serving.balancer import FOLDER, RUNTIME, Balancer, allowed
from .._serving.command import PROGRAMS
from . import serving_registry, serving_services
from .serving_rollout import Rollout

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["checked", "serving", "absent"], "default": "serving"},
    "model": {"type": "str", "default": ""},
    "engine": {"type": "str", "choices": ["vllm-cpu", "vllm-gaudi"], "default": "vllm-gaudi"},
    "served_name": {"type": "str", "default": ""},
    "first_name": {"type": "str", "default": "model"},
    "ports": {"type": "list", "elements": "int", "default": []},
    "release": {"type": "str", "default": ""},
    "vllm_version": {"type": "str", "default": ""},
    "program": {"type": "str", "default": ""},
    "image": {"type": "str", "default": ""},
    "container_engine": {"type": "str", "choices": ["docker", "podman"], "default": "docker"},
    "groups": {"type": "list", "elements": "str", "default": []},
    "generation": {"type": "str", "choices": ["gaudi2", "gaudi3"], "default": "gaudi3"},
    "cards": {"type": "int", "default": 1},
    "dtype": {"type": "str", "default": "bfloat16"},
    "max_model_len": {"type": "int", "default": 0},
    "max_num_seqs": {"type": "int", "default": 0},
    "cache_gib": {"type": "int", "default": 4},
    "enforce_eager": {"type": "bool", "default": False},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}, "no_log": True},
    "recipe_cache_mb": {"type": "int", "default": 8192},
    "recipe_cache_from": {"type": "str", "default": ""},
    "recipe_cache_key_file": {"type": "str", "default": "", "no_log": False},
    "copy": {"type": "bool", "default": True},
    "keep": {"type": "int", "default": 3},
    "accept_untried": {"type": "bool", "default": False},
    "canary": {"type": "bool", "default": False},
    "canary_weight": {"type": "int", "default": 10},
    "rollback": {"type": "bool", "default": False},
    "start_seconds": {"type": "int", "default": 3600},
    "drain_seconds": {"type": "int", "default": 300},
    "first_token_seconds": {"type": "int", "default": 600, "no_log": False},
    "address": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "default": 8443},
    "metrics_port": {"type": "int", "default": 9420},
    "metrics_tls": {"type": "bool", "default": False},
    "paths": {"type": "list", "elements": "str", "default": list(Balancer("", 0, 0, {}).paths)},
    "peers": {"type": "dict", "default": {}},
    "key_sha256": {"type": "str", "default": "", "no_log": True},
    "python": {"type": "path", "default": "/usr/bin/python3"},
    "head": {"type": "str", "default": ""},
    "programs": {"type": "dict", "default": {}},
    "trainer": {"type": "path", "default": "/opt/gaudi3-scale/venv/bin/gaudi3-train"},
    "registry_environment": {"type": "dict", "default": {}, "no_log": True},
    "seen": {"type": "dict", "default": {}},
    "remove_models": {"type": "bool", "default": False},
    "root": {"type": "path", "default": unit.ROOT},
    "folder": {"type": "path", "default": FOLDER},
    "unit_folder": {"type": "path", "default": "/etc/systemd/system"},
    "proc_root": {"type": "path", "default": "/proc"},
    "program_folder": {"type": "path", "default": PROGRAMS},
    "runtime_folder": {"type": "path", "default": RUNTIME},
    "user": {"type": "str", "default": unit.USER},
    "balancer_user": {"type": "str", "default": "haproxy"},
    "systemctl_executable": {"type": "path", "default": "systemctl"},
    "haproxy_executable": {"type": "path", "default": "/usr/sbin/haproxy"},
}


#: The least that options of numbers may be.
LEAST = {"max_model_len": 0, "max_num_seqs": 0, "cache_gib": 1, "keep": 1, "first_token_seconds": 1}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Judge, then do what is missing."""
    result: dict[str, Any] = {}
    serving_registry.show_what_is_no_secret(module, "environment", "registry_environment")
    try:
        result = serving_services.remove(module) if module.params["state"] == "absent" else _serve(module)
    except (Refusal, OSError) as error:
        module.fail_json(msg=str(error))
    return result


def request_of(options: dict[str, Any]) -> request.Request:
    """The options as a request."""
    same = {each.name for each in dataclasses.fields(request.Request)} & {*options}
    given = {name: options[name] for name in same}
    return request.Request(**{**given, "replicas": tuple(options["ports"]), "programs": options["program_folder"]})


def balancer_of(options: dict[str, Any], canary: bool) -> Balancer:
    """The options as a balancer; with a ``canary`` its last replica is one."""
    names = {f"replica-{number}": port for number, port in enumerate(options["ports"], 1)}
    return Balancer(
        options["address"],
        options["port"],
        options["metrics_port"],
        names,
        peers=dict(options["peers"]),
        paths=tuple(options["paths"]),
        canary=[*names][-1] if canary else "",
        canary_weight=options["canary_weight"],
        first_token_seconds=options["first_token_seconds"],
        metrics_tls=options["metrics_tls"],
        group=options["user"],
        runtime=options["runtime_folder"],
        folder=options["folder"],
    )


def _serve(module: AnsibleModule) -> dict[str, Any]:
    options = module.params
    found = releases.Releases(options["root"])
    _refuse_variables(options)
    wanted = dataclasses.replace(request_of(options), served_name=_name(options, found))
    model: Optional[folder.Model] = None
    origin: Optional[serving_registry.Registered] = None
    if options["rollback"]:
        _refuse_other_ports(options, releases.refuse_rollback(found), found)
    else:
        if options["canary"]:
            _refuse_other_ports(options, found.before()[releases.CURRENT], found)
        place = options["model"]
        if place.startswith(serving_registry.PREFIX):
            # What a run has begun with is what it serves on all hosts, whatever the alias means by then.
            seen = options["seen"]
            origin = serving_registry.look(module, seen["model"] if seen.get("asked") == place else place)
            # A release has a copy: what was fetched goes, and what comes back is not fetched again.
            wanted = dataclasses.replace(wanted, copy=True)
            place = _place_of(module, found, origin)
            if not place:
                shown = {"before": "", "after": f"{origin.reference}\n", "after_header": origin.folder}
                return {"changed": options["state"] != "checked", "diff": [shown], **_seen(options, origin)}
        model = folder.read(place)
        model = dataclasses.replace(model, identity=origin.digest) if origin else model
        request.refuse(wanted, model)
        if not found.with_digest(request.digest_of(wanted, model)) and wanted.copy:
            problem = releases.room_problem(options["root"], model)
            if problem:
                raise Refusal(problem)
    _refuse_ports(module)
    if options["state"] == "checked":
        return {"changed": False, **_seen(options, origin)}
    result = Rollout(module, wanted, model, origin, lambda canary: balancer_of(options, canary)).run()
    if origin and not module.check_mode:
        serving_registry.forget(options["root"])
    return {**result, **_seen(options, origin)}


def _place_of(module: AnsibleModule, found: releases.Releases, origin: serving_registry.Registered) -> str:
    """Where the files of a version are, fetched where need be; empty where a dry run would have to fetch them."""
    known = found.with_identity(origin.digest)
    if known:
        return os.path.join(found.folder_of(known), "model")
    if module.check_mode:
        return origin.folder if origin.there else ""
    return serving_registry.fetch(module, origin)


def _seen(options: dict[str, Any], origin: Optional[serving_registry.Registered]) -> dict[str, str]:
    """What was asked for, and which version that is: for the tasks that follow."""
    return {"asked": options["model"], "model": origin.reference if origin else options["model"]}


def _name(options: dict[str, Any], found: releases.Releases) -> str:
    """The name that is given, or that is served already, or else that of the model's folder.

    ``Refusal`` where a canary would be known by another name than the rest: who asks for one would get a 404 of the
    other.
    """
    served = found.name_of(found.behind(releases.CURRENT))
    given = str(options["served_name"])
    if given and served and given != served and options["canary"]:
        raise Refusal(
            f"serving_name is {printable(given)}, and what is served is called {printable(served)}: give the canary "
            "the same name, as clients get an answer of either."
        )
    return given or served or str(options["first_name"])


def _refuse_other_ports(options: dict[str, Any], release: str, found: releases.Releases) -> None:
    ports = options["ports"][:-1] if options["canary"] else options["ports"]
    problem = releases.ports_problem(release, found.facts(release), ports, options["engine"]) if release else ""
    if problem:
        raise Refusal(problem)


def _refuse_variables(options: dict[str, Any]) -> None:
    ports = [options["port"], options["metrics_port"], *options["ports"]]
    canary = options["canary"]
    checks = {
        "serving_rollback and serving_canary are both true: give one of them.": canary and options["rollback"],
        f"serving_canary needs 2 replicas, and serving_replicas is {len(options['ports'])}: give 2 or more, as the "
        "last one serves the new version and the others the old.": canary and len(options["ports"]) < 2,
        f"serving_canary_weight is {options['canary_weight']}: give percent from 1 to 99.": not (
            0 < options["canary_weight"] < 100
        ),
        "serving_replicas is 0: give 1 or more.": not options["ports"],
        f"serving_port, serving_metrics_port and the ports of the replicas are {', '.join(map(str, ports))}: give "
        "different ones from 1 to 65535.": len({*ports}) != len(ports) or not all(0 < port < 65536 for port in ports),
        "serving_paths has what is no path such as /v1/completions: correct it.": not allowed(options["paths"]),
        f"serving_drain_seconds is {options['drain_seconds']}: give 0 or more.": options["drain_seconds"] < 0,
        f"serving_recipe_cache_mb is {options['recipe_cache_mb']}: give 0 or more.": options["recipe_cache_mb"] < 0,
        "serving_recipe_cache_from is used only with serving_recipe_cache_key_file: set it, too.": bool(
            options["recipe_cache_from"]
        )
        and not options["recipe_cache_key_file"],
        f"serving_dtype is {printable(options['dtype'], 60)}: give one of {', '.join(versions.DTYPES)}.": (
            options["dtype"] not in versions.DTYPES
        ),
        **{
            f"serving_{name} is {options[name]}: give {least} or more.": options[name] < least
            for name, least in LEAST.items()
        },
        f"serving_start_seconds is {options['start_seconds']}: give 10 or more.": options["start_seconds"] < 10,
    }
    for sentence, wrong in checks.items():
        if wrong:
            raise Refusal(sentence)


def _refuse_ports(module: AnsibleModule) -> None:
    """``Refusal`` for a port that a process of somebody else holds."""
    options = module.params
    own = {port: (unit.unit_of(number),) for number, port in enumerate(options["ports"], 1)}
    balanced = {options[name]: (unit.BALANCER,) for name in ("port", "metrics_port")}
    for port, owners in {**balanced, **own}.items():
        address = "127.0.0.1" if port in own else options["address"]
        found = listeners.on_port(port, address, options["proc_root"])
        # The client of a container is the unit's, and the server within has a group of its own.
        contained = (
            port in own and options["engine"] == "vllm-gaudi" and os.path.exists(serving_services.record(options))
        )
        others = [each for each in found if not each.belongs_to(owners)]
        if others and not contained:
            name = (
                "serving_replica_port"
                if port in own
                else "serving_port"
                if port == options["port"]
                else ("serving_metrics_port")
            )
            raise Refusal(
                f"Port {port} of {address} is held by {printable(others[0])}, so {owners[0]} cannot listen there: stop "
                f"and disable what holds it, or give another port as {name}."
            )
