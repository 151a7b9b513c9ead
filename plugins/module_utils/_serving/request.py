# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node is asked to serve, and everything that is wrong with it before anything is changed."""

from __future__ import annotations

import pwd
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._refusal import Refusal
from . import command, folder, releases, versions
from .buckets import STRATEGY, Buckets
from .unit import ROOT, USER, unit_of
from .warmup import CARD_BYTES, RESERVED, RESERVED_VARIABLE, plan

#: vLLM's default of sequences at once where it finds no memory of a GPU to go by, as on cards.
SEQUENCES = 256


@dataclass(frozen=True)
class Request:
    """The variables of the role, checked for their kinds."""

    model: str
    engine: str
    replicas: Sequence[int]
    """Ports on the loopback address, by replica."""
    served_name: str
    release: str = ""
    """Of the vendor's software, on cards."""
    vllm_version: str = ""
    image: str = ""
    container_engine: str = "docker"
    dtype: str = "bfloat16"
    max_model_len: int = 0
    max_num_seqs: int = 0
    cards: int = 1
    generation: str = "gaudi3"
    cache_gib: int = 4
    enforce_eager: bool = False
    drain_seconds: int = 300
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    copy: bool = True
    accept_untried: bool = False
    program: str = ""
    """vllm of the environment; of the image where it is empty."""
    groups: Sequence[str] = ()
    root: str = ROOT
    programs: str = command.PROGRAMS
    user: str = USER

    @property
    def on_cards(self) -> bool:
        """Whether the engine is that of the cards."""
        return self.engine == "vllm-gaudi"

    def drains(self) -> bool:
        """Whether the engine ends what it answers before it ends itself."""
        if not self.on_cards:
            return True
        try:
            return versions.pairing(self.vllm_version, self.release).drains
        except Refusal:
            return False

    def chosen_image(self) -> str:
        """The image; ``Refusal`` where none is known for the release."""
        if self.image and self.accept_untried:
            return self.image
        found = versions.pairing(self.vllm_version, self.release)
        return self.image or versions.image_of(found)


def refuse(request: Request, model: folder.Model) -> None:
    """``Refusal`` with the first of what the engine could not start with, without any change."""
    for problem in (
        versions.family_problem(request.engine, model.config, request.accept_untried),
        versions.head_problem(request.engine, model.config),
        folder.length_problem(model, request.max_model_len),
        _rights(request, model),
    ):
        if problem:
            raise Refusal(problem)
    if request.on_cards:
        request.chosen_image()
        _refuse_memory(request, model)


def _rights(request: Request, model: folder.Model) -> str:
    """A folder that is served where it is has to be readable; a copy is made by root."""
    if request.copy:
        return ""
    closed = folder.unreadable(model, *account(request.user))
    if not closed:
        return ""
    return (
        f"{closed} may not be read by the user {request.user}, whom vLLM runs as: set serving_copy to true to serve a "
        "copy that it may read, or give it the right (exports are written for their owner alone)."
    )


def account(name: str = USER) -> tuple[int, Collection[int]]:
    """Number of the service's user and of its groups; a user that is not there yet may read what all may."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return -1, ()
    return user.pw_uid, {user.pw_gid}


def _refuse_memory(request: Request, model: folder.Model) -> None:
    """Refuse weights, cache and warm-up that do not fit on the replica's cards."""
    given = dict(request.environment)
    variables = {name: int(value) for name, value in given.items() if "_BUCKET_" in name and str(value).isdigit()}
    found = plan(
        model.config,
        weights_bytes=model.weights_bytes,
        card_bytes=CARD_BYTES[request.generation],
        cards=request.cards,
        max_model_len=request.max_model_len or model.longest,
        max_num_seqs=request.max_num_seqs or SEQUENCES,
        max_num_batched_tokens=None,
        dtype=request.dtype,
        buckets=Buckets(str(given.get(STRATEGY, "exp")), variables),
        reserved=float(given.get(RESERVED_VARIABLE, RESERVED)),
    )
    if found.fits:
        return
    proposed = " ".join(f"{name}={value}" for name, value in sorted(found.environment.items()))
    remedy = f"; put {proposed} into serving_environment" if proposed else ""
    raise Refusal(f"{model.path} {found.sentence}{remedy}.")


def replicas_of(request: Request) -> dict[str, Any]:
    """How each replica of a release runs, by its name."""
    found = {}
    for number, port in enumerate(request.replicas, 1):
        name, state = f"replica-{number}", f"{request.root}/replica-{number}"
        engine = command.Engine(
            request.engine,
            port,
            request.served_name,
            request.dtype,
            request.max_model_len,
            request.max_num_seqs,
            request.drain_seconds if request.drains() else 0,
            request.cards,
            request.enforce_eager,
            request.cache_gib,
            request.arguments,
            request.environment,
        )
        argv = command.serve_argv(engine, request.program or "vllm")
        environment, removal = command.environment_of(engine, state, request.programs), []
        if request.on_cards:
            container = command.Container(
                request.container_engine,
                request.chosen_image(),
                command.cards_of(number, request.cards),
                _numbers(request.user),
                unit_of(number).rpartition(".")[0],
                request.groups,
                request.programs,
            )
            argv = command.container_argv(container, argv, environment, state)
            removal = command.removal_argv(container)
            environment = {}
        found[name] = command.settings(argv, environment, ["127.0.0.1", port], removal, request.served_name)
    return found


def _numbers(user: str) -> str:
    uid, gids = account(user)
    return f"{uid}:{next(iter(gids), uid)}" if uid >= 0 else user


def digest_of(request: Request, model: folder.Model) -> str:
    """What a release for this request is known by."""
    return releases.digest(model.identity, replicas_of(request), request.copy)
