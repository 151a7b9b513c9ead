# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The command and the environment that a replica runs vLLM with, in an environment of its own or in a container.

Facts on options and variables: vLLM 0.32.0 on a CPU (run on 2026-11-27) and vllm-gaudi at 091bbadda1 (read).
``{model}`` in a command is put in by whoever starts it: the folder of the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._jobs.container import DEVICES, RUNTIME, reference
from .._secret_words import names_secret, secret_kind

MODEL = "{model}"
PROGRAMS = "/usr/local/lib/gaudi3-serving"
#: Has the headers of an answer wait for its first token, so that the balancer may ask another replica until then.
MIDDLEWARE = "gaudi_serving_first_token.FirstToken"
#: Offline, and telling nobody: a node that serves asks no hub.
ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Engine:
    """How one replica is started."""

    kind: str
    """vllm-cpu or vllm-gaudi."""
    port: int
    name: str
    """The model's name for those who ask."""
    dtype: str = "bfloat16"
    max_model_len: int = 0
    """0: the model's own."""
    max_num_seqs: int = 0
    drain_seconds: int = 300
    """0: the version cannot drain."""
    cards: int = 1
    enforce_eager: bool = False
    cache_gib: int = 4
    """On a CPU: memory of the cache."""
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def serve_argv(engine: Engine, program: str) -> list[str]:
    """``vllm serve`` with its options. It listens on the node itself: what is outside talks to the balancer."""
    argv = [program, "serve", MODEL, "--host", "127.0.0.1", "--port", str(engine.port)]
    argv += ["--served-model-name", engine.name, "--dtype", engine.dtype, "--middleware", MIDDLEWARE]
    argv += ["--max-model-len", str(engine.max_model_len)] if engine.max_model_len else []
    argv += ["--max-num-seqs", str(engine.max_num_seqs)] if engine.max_num_seqs else []
    argv += ["--tensor-parallel-size", str(engine.cards)] if engine.kind == "vllm-gaudi" and engine.cards > 1 else []
    argv += ["--enforce-eager"] if engine.enforce_eager else []
    argv += ["--shutdown-timeout", str(engine.drain_seconds)] if engine.drain_seconds else []
    # The balancer logs who asked; its looks at /health would fill the journal.
    argv += ["--disable-uvicorn-access-log"]
    return [*argv, *map(str, engine.arguments)]


def environment_of(engine: Engine, state: str, programs: str = PROGRAMS) -> dict[str, str]:
    """Its variables; ``state`` is a folder that it may write, and ``programs`` has the middleware."""
    own = {"VLLM_CACHE_ROOT": f"{state}/cache", "HOME": state, "PYTHONPATH": programs}
    if engine.kind == "vllm-cpu":
        own["VLLM_CPU_KVCACHE_SPACE"] = str(engine.cache_gib)
    return {**ENVIRONMENT, **own, **{name: str(value) for name, value in engine.environment.items()}}


@dataclass(frozen=True)
class Container:
    """What vllm-gaudi runs in."""

    engine: str
    image: str
    cards: Sequence[int]
    """Modules of the cards that the replica has."""
    user: str
    """Numbers of user and group."""
    name: str
    groups: Sequence[str] = ()
    """Groups that open the device files."""
    programs: str = PROGRAMS
    folders: Sequence[str] = ()
    """Further folders of the host that it sees where they are."""


def container_argv(container: Container, argv: Sequence[str], environment: Mapping[str, str], state: str) -> list[str]:
    """The engine's command in the foreground, with the options of the vendor's page on its docker images.

    ``--init``, as the image's first process reaps nothing and a Worker that was killed would stay as a zombie.
    """
    options = ["--rm", f"--name={container.name}", "--init", "--network=host", "--ipc=host", "--pull=never"]
    options += ["--cap-drop=all", "--cap-add=SYS_NICE", "--security-opt=no-new-privileges", "--log-driver=none"]
    options += [f"--user={container.user}", *(f"--group-add={each}" for each in container.groups)]
    variables = dict(environment)
    if container.engine == "docker":
        options += [f"--runtime={RUNTIME}", "--ulimit=memlock=-1:-1", "--ulimit=nofile=65536:65536"]
        variables["HABANA_VISIBLE_DEVICES"] = ",".join(map(str, container.cards)) or "all"
    else:
        options += ["--replace", "--ulimit=host", "--security-opt=label=disable"]
        options += [f"--device={each}" for each in DEVICES]
    variables["HABANA_VISIBLE_MODULES"] = ",".join(map(str, container.cards)) or "all"
    options += [
        f"--volume={MODEL}:{MODEL}:ro",
        f"--volume={container.programs}:{container.programs}:ro",
        *(f"--volume={each}:{each}" for each in (state, *container.folders)),
    ]
    # A secret comes from the client's own environment: arguments are shown to every user of the host.
    options += [
        f"--env={name}" if is_secret(name, value) else f"--env={name}={value}"
        for name, value in sorted(variables.items())
    ]
    return [f"/usr/bin/{container.engine}", "run", *options, "--entrypoint=", reference(container.image), *argv]


def is_secret(name: str, value: str) -> bool:
    """Whether a variable is not to be among the arguments of a process."""
    return names_secret(name) or bool(secret_kind(value))


def removal_argv(container: Container) -> list[str]:
    """What removes a container whose client has gone."""
    ignore = ["--ignore"] if container.engine == "podman" else []
    return [f"/usr/bin/{container.engine}", "rm", "--force", *ignore, container.name]


def cards_of(replica: int, count: int, first: int = 0) -> list[int]:
    """Modules of a replica, counted from 1, of ``count`` cards: side by side."""
    start = first + (replica - 1) * count
    return [*range(start, start + count)]


def settings(
    argv: Sequence[str], environment: Mapping[str, str], health: Sequence[object], removal: Sequence[str], probe: str
) -> dict[str, Any]:
    """What a release says of one replica, as gaudi_serving_replica.py reads it."""
    return {
        "argv": [*argv],
        "environment": dict(environment),
        "health": [*health],
        "remove": [*removal],
        "probe": probe,
    }
