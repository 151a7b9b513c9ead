# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node is asked to serve, and everything that is wrong with it before anything is changed."""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from . import command, folder, options, recipes, releases, versions
from .buckets import STRATEGY, Buckets
from .unit import ROOT, USER, unit_of
from .warmup import CARD_BYTES, RESERVED, RESERVED_VARIABLE, UTILISATION, plan

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
    recipe_cache_mb: int = 0
    """On cards: what a replica's compiled graphs may take; 0 keeps none."""
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
        options.arguments_problem(request.arguments),
        options.environment_problem(request.environment),
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
    hidden = "" if request.on_cards else folder.hidden(os.path.realpath(model.path))
    if not closed and hidden:
        return (
            f"{model.path} is below {hidden}, which the service does not see (ProtectHome and PrivateTmp of its unit): "
            "set serving_copy to true, or put the model elsewhere, such as below /srv."
        )
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
        max_num_batched_tokens=int(_argument(request, "--max-num-batched-tokens", 0)) or None,
        dtype=request.dtype,
        cache_dtype=options.value_of(request.arguments, "--kv-cache-dtype") or "auto",
        utilisation=_argument(request, "--gpu-memory-utilization", UTILISATION),
        buckets=Buckets(str(given.get(STRATEGY, "exp")), variables),
        reserved=float(given.get(RESERVED_VARIABLE, RESERVED)),
    )
    if found.fits:
        return
    proposed = " ".join(f"{name}={value}" for name, value in sorted(found.environment.items()))
    remedy = f"; put {proposed} into serving_environment" if proposed else ""
    raise Refusal(f"{model.path} {found.sentence}{remedy}.")


def _argument(request: Request, name: str, usual: float) -> float:
    """A number among the arguments; ``Refusal`` for what is none."""
    given = options.value_of(request.arguments, name)
    try:
        return float(given) if given else usual
    except ValueError:
        raise Refusal(f"{name} in serving_arguments is {printable(given, 60)!r}: give a number.") from None


def recipe_key(request: Request, model: folder.Model) -> Optional[recipes.Key]:
    """What the compiled graphs of this model are kept by; None where none are."""
    if not request.on_cards or not request.recipe_cache_mb or recipes.VARIABLE in request.environment:
        return None
    engine = {
        "image": request.chosen_image(),
        "length": request.max_model_len or model.longest,
        "sequences": request.max_num_seqs,
        "eager": request.enforce_eager,
        "arguments": [*map(str, request.arguments)],
        "environment": {name: str(value) for name, value in request.environment.items()},
    }
    return recipes.key_of(request.release, request.generation, request.cards, model.config, engine)


def replicas_of(request: Request, key: Optional[recipes.Key] = None) -> dict[str, Any]:
    """How each replica of a release runs, by its name; ``key`` is that of its compiled graphs."""
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
        if key:
            place = recipes.folder_of(request.root, number, key.name)
            environment[recipes.VARIABLE] = recipes.variable(place, request.recipe_cache_mb)
        if request.on_cards:
            container = command.Container(
                request.container_engine,
                request.chosen_image(),
                command.cards_of(number, request.cards),
                _numbers(request.user),
                unit_of(number).rpartition(".")[0],
                request.groups,
                request.programs,
                [recipes.top_of(request.root, number)] if key else [],
            )
            argv = command.container_argv(container, argv, environment, state)
            removal = command.removal_argv(container)
            environment = {name: value for name, value in environment.items() if command.is_secret(name, value)}
        found[name] = command.settings(argv, environment, ["127.0.0.1", port], removal, request.served_name)
    return found


def _numbers(user: str) -> str:
    uid, gids = account(user)
    return f"{uid}:{next(iter(gids), uid)}" if uid >= 0 else user


def digest_of(request: Request, model: folder.Model) -> str:
    """What a release for this request is known by."""
    return releases.digest(model.identity, replicas_of(request, recipe_key(request, model)), request.copy)
