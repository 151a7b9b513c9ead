# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a model's weights, cache and warm-up fit on Gaudi cards under vLLM, before anything is started.

vLLM's Gaudi plugin measures what is free once the weights are loaded, gives the cache a fixed share of it, and then
compiles one graph per shape, whose bytes nobody measured beforehand (vllm-project/vllm-gaudi#1736, August 2026). Here
the same arithmetic runs first (v0.26.0, v1/worker/hpu_worker.py, ``determine_available_memory``).

What a graph takes is known by one report alone, so the plan takes its stricter end and says so. The vendor's own
calculator takes 5 to 20 MB a graph (.cd/server/settings_vllm.csv); a log of 2024 in the plugin's pages shows 958 MiB a
prompt graph and 3.4 MiB a decode graph, on Gaudi 2 in a mode that is no longer the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._refusal import Refusal
from .buckets import PLUGINS, STRATEGIES, Buckets, Limits, shapes
from .footprint import Footprint, footprint
from .propose import covering_set

GIB = 2**30
CARD_BYTES = {"gaudi3": 126 * GIB, "gaudi2": 94 * GIB}
"""Bytes of a card that programs may have, the stricter of the sources: for Gaudi 3 the plugin's calculator takes 128
GiB less 2, #1736 says 126.5, a log of release 1.18 has dramSize=136465870848; for Gaudi 2 its pages log 94.62 GiB."""
GRAPH_BYTES = 30 * GIB // 300
"""A graph's share: #1736 says 20 to 30 GiB at the peak of more than 300 shapes (27 billion FP8 weights on 4 cards of
1.24.1). One report: the upper end over the lower count."""
PROFILE_BYTES = 504 * 2**20
"""What the profile run before the cache took in the larger of two logs in the plugin's pages (504 and 355 MiB)."""
BATCHED_TOKENS = 2048
"""vLLM's default tokens of a step for a server where the platform says 0 bytes of memory, as the plugin's does."""
UTILISATION = 0.9
RESERVED = 0.1
"""The plugin's VLLM_GRAPH_RESERVED_MEM: the share of usable memory that the cache leaves to the graphs."""
RESERVED_VARIABLE = "VLLM_GRAPH_RESERVED_MEM"
ONE_REPORT = "a graph at 0.10 GiB is the stricter end of one report (vllm-project/vllm-gaudi#1736), not a measurement"


@dataclass(frozen=True)
class Request:
    """What is asked for: the engine's limits, the cards, and the shares of memory."""

    card_bytes: int
    cards: int
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    utilisation: float = UTILISATION
    reserved: float = RESERVED


@dataclass(frozen=True)
class Parts:
    """Bytes of one card with one bucket set: the card is all of them and what is left."""

    card: int
    weights: int
    profile: int
    cache: int
    state: int
    graphs: int
    shapes: int | None
    reserved: float
    one_sequence: int
    """Cache that one sequence of the full length takes."""

    @property
    def left(self) -> int:
        """What the graphs may take; negative where the rest alone is too much."""
        return self.card - self.weights - self.profile - self.cache - self.state

    @property
    def full_sequences(self) -> float:
        """How many sequences of the full length the cache holds at once."""
        return self.cache / self.one_sequence if self.one_sequence else 0.0

    @property
    def fits(self) -> bool:
        """Whether the cache holds one whole sequence and the graphs have room."""
        return self.shapes is not None and self.cache >= self.one_sequence and 0 <= self.graphs <= self.left


@dataclass(frozen=True)
class ServingPlan:
    """The answer: what was asked for, in bytes, and a set that fits if there is one."""

    fits: bool
    """Whether what was asked for fits as it was asked."""
    sentence: str
    environment: dict[str, str]
    """The VLLM_* variables of the set that fits, each of them really read; empty where none fits."""
    asked: Parts
    proposed: Parts | None
    buckets: Buckets | None
    counts: dict[str, int | None]
    """Number of shapes under each strategy with its defaults; None above 20,000 combinations."""
    notes: tuple[str, ...] = field(default=())

    def as_facts(self) -> dict[str, Any]:
        """The plan as plain data, bytes as integers."""
        return {
            "fits": self.fits,
            "sentence": self.sentence,
            "environment": dict(self.environment),
            "shapes": dict(self.counts),
            "asked": _facts(self.asked),
            "proposed": _facts(self.proposed) if self.proposed else None,
            "strategy": self.buckets.strategy if self.buckets else None,
            "notes": list(self.notes),
            "read_in": f"vllm-gaudi {' and '.join(PLUGINS)}",
        }


def plan(
    config: Mapping[str, Any],
    *,
    weights_bytes: int,
    card_bytes: int,
    cards: int,
    max_model_len: int,
    max_num_seqs: int,
    max_num_batched_tokens: int | None,
    dtype: str,
    buckets: Buckets | None,
    cache_dtype: str = "auto",
    utilisation: float = UTILISATION,
    reserved: float = RESERVED,
) -> ServingPlan:
    """The plan of one server. Bytes are of all weights and of one card; lengths are in tokens; shares from 0 to 1.

    ``buckets``: the set to be used, or None for the plugin's default. ``Refusal`` where the request is no valid one.
    """
    tokens = BATCHED_TOKENS if max_num_batched_tokens is None else max_num_batched_tokens
    request = _checked(Request(card_bytes, cards, max_model_len, max_num_seqs, tokens, utilisation, reserved))
    served = "bfloat16" if dtype in ("auto", "float16", "float32") else dtype
    model = footprint(config, weights_bytes, cards, served, cache_dtype)
    _check_chunks(request, model)
    wanted = buckets or Buckets()
    asked = parts(model, request, wanted)
    notes = [ONE_REPORT, *_notes(config, wanted)]
    counts = _counts(_limits(model, request, asked))
    if asked.fits:
        environment = {**wanted.environment, RESERVED_VARIABLE: f"{reserved:g}"}
        return ServingPlan(
            True, _fits_sentence(asked, request), environment, asked, asked, wanted, counts, tuple(notes)
        )
    because = _because(asked, request)
    if found := _proposal(model, request, wanted):
        chosen, set_of, way = found
        environment = {**set_of.environment, RESERVED_VARIABLE: f"{chosen.reserved:g}"}
        sentence = f"does not fit because {because}; fits with {way}"
        return ServingPlan(False, sentence, environment, asked, chosen, set_of, counts, tuple(notes))
    sentence = f"does not fit because {because}; {_other_ways(config, weights_bytes, request, served, cache_dtype)}"
    return ServingPlan(False, sentence, {}, asked, None, None, counts, tuple(notes))


def parts(model: Footprint, request: Request, buckets: Buckets) -> Parts:
    """The bytes of one card as the plugin would divide them: the cache gets its share whatever the graphs need."""
    free = max(0, request.card_bytes - model.weights - PROFILE_BYTES)
    share = int(free * request.utilisation * (1 - request.reserved)) - model.block
    blocks = max(0, share // model.block) if model.block else 0
    one = (-(-request.max_model_len // 128) + model.layer_groups * bool(model.linear_layers)) * model.block
    known = Parts(
        card=request.card_bytes,
        weights=model.weights,
        profile=PROFILE_BYTES,
        # One block more than is used: the plugin keeps a dummy block.
        cache=(blocks + 1) * model.block if blocks else 0,
        state=model.fixed_state(request.max_num_seqs),
        graphs=0,
        shapes=None,
        reserved=request.reserved,
        one_sequence=one,
    )
    count = shapes(buckets, _limits(model, request, known)).count
    return replace(known, shapes=count, graphs=(count or 0) * GRAPH_BYTES)


def _limits(model: Footprint, request: Request, known: Parts) -> Limits:
    blocks = known.cache // model.block if model.block else 0
    return Limits(request.max_model_len, request.max_num_seqs, request.max_num_batched_tokens, blocks)


def _counts(limits: Limits) -> dict[str, int | None]:
    """Shapes of each strategy's defaults; one whose defaults the plugin itself would refuse is left out."""
    found = {}
    for name in STRATEGIES:
        try:
            found[name] = shapes(Buckets(name), limits).count
        except Refusal:  # `lin` of a length below one block
            continue
    return found


def _proposal(model: Footprint, request: Request, wanted: Buckets) -> tuple[Parts, Buckets, str] | None:
    """Fewer shapes at the same reserve where that fits, else a larger reserve: the first found, and how it is said."""
    for hundredths in range(round(request.reserved * 100), 91):
        trial = replace(request, reserved=hundredths / 100) if hundredths > round(request.reserved * 100) else request
        room = parts(model, trial, wanted)
        if room.left < 0 or room.cache < room.one_sequence:
            if room.cache < room.one_sequence:
                return None
            continue
        smaller = covering_set(_limits(model, trial, room), room.left // GRAPH_BYTES)
        if smaller is None:
            continue
        fitting = parts(model, trial, smaller)
        if fitting.fits:
            return fitting, smaller, _way(model, trial, wanted, fitting)
    return None


def _way(model: Footprint, request: Request, wanted: Buckets, fitting: Parts) -> str:
    """The proposal in words, and what keeping the asked set would cost instead."""
    first = (
        f"{fitting.shapes} shapes (strategy lin, {gib(fitting.graphs)} of graphs) at {RESERVED_VARIABLE}="
        f"{fitting.reserved:g}, where the cache holds {fitting.full_sequences:.1f} sequences of full length"
    )
    for hundredths in range(round(request.reserved * 100) + 1, 91):
        kept = parts(model, replace(request, reserved=hundredths / 100), wanted)
        if kept.fits:
            return (
                f"{first}, or with all {kept.shapes} shapes at {RESERVED_VARIABLE}={kept.reserved:g},"
                f" where it holds {kept.full_sequences:.1f}"
            )
    return first


def _because(asked: Parts, request: Request) -> str:
    rest = asked.card - asked.weights - asked.profile
    if rest <= 0:
        return f"the weights take {gib(asked.weights)} of each card, which has {gib(asked.card)}"
    if asked.cache < asked.one_sequence:
        return (
            f"one sequence of {request.max_model_len} tokens takes {gib(asked.one_sequence)} of cache and a card has"
            f" {gib(asked.cache)} for it after {gib(asked.weights)} of weights"
        )
    if asked.left < 0:
        return (
            f"the recurrent state of {request.max_num_seqs} sequences takes {gib(asked.state)} beside weights of"
            f" {gib(asked.weights)} and a cache of {gib(asked.cache)}, {gib(-asked.left)} more than a card has"
        )
    taken = f"weights take {gib(asked.weights)} and the cache {gib(asked.cache + asked.state)} of {gib(asked.card)}"
    if asked.shapes is None:
        return f"the bucket set has more than 20,000 combinations: no warm-up of that many shapes ends ({taken})"
    return (
        f"the warm-up of {asked.shapes} shapes may want {gib(asked.graphs)} of a card and {gib(asked.left)} are left"
        f" ({taken})"
    )


def _fits_sentence(asked: Parts, request: Request) -> str:
    return (
        f"fits: weights {gib(asked.weights)}, cache {gib(asked.cache + asked.state)} ({asked.full_sequences:.1f}"
        f" sequences of {request.max_model_len} tokens), and {gib(asked.left)} for {asked.shapes} shapes that may want"
        f" {gib(asked.graphs)}"
    )


def _other_ways(config: Mapping[str, Any], weights_bytes: int, request: Request, dtype: str, cache_dtype: str) -> str:
    """More cards, then fewer sequences, then a shorter length: the first that has a set which fits."""

    def works(trial: Request) -> bool:
        try:
            model = footprint(config, weights_bytes, trial.cards, dtype, cache_dtype)
        except Refusal:
            return False
        return parts(model, trial, Buckets()).fits or _proposal(model, trial, Buckets()) is not None

    for cards in (2, 4, 8):
        if cards > request.cards and works(replace(request, cards=cards)):
            return f"fits with {cards} cards"
    sequences = request.max_num_seqs // 2
    while sequences:
        if works(replace(request, max_num_seqs=sequences)):
            return f"fits with {sequences} sequences at once"
        sequences //= 2
    length = request.max_model_len // 2 // 128 * 128
    while length:
        if works(replace(request, max_model_len=length)):
            return f"fits with a length of {length} tokens"
        length = length // 2 // 128 * 128
    return "no bucket set, length or number of cards up to 8 fits: use a smaller model or FP8 weights"


def _checked(request: Request) -> Request:
    named = {
        "card_bytes": request.card_bytes,
        "cards": request.cards,
        "max_model_len": request.max_model_len,
        "max_num_seqs": request.max_num_seqs,
        "max_num_batched_tokens": request.max_num_batched_tokens,
    }
    for name, value in named.items():
        if value < 1:
            raise Refusal(f"{name} is {value}, which no server can have: give 1 or more")
    if not 0 < request.utilisation <= 1 or not 0 <= request.reserved < 1:
        raise Refusal(
            f"utilisation {request.utilisation:g} and reserve {request.reserved:g} are shares of memory: give above 0"
            " up to 1, and 0 up to below 1"
        )
    tokens = min(request.max_num_batched_tokens, request.max_num_seqs * request.max_model_len)
    return replace(request, max_num_batched_tokens=tokens)


def _check_chunks(request: Request, model: Footprint) -> None:
    if model.linear_layers and request.max_num_batched_tokens % 128:
        raise Refusal(
            f"max_num_batched_tokens {request.max_num_batched_tokens} is no multiple of 128, which the plugin demands"
            " of a model with linear attention: give a multiple of 128"
        )


def _notes(config: Mapping[str, Any], wanted: Buckets) -> list[str]:
    notes = []
    if wanted.ignored:
        notes.append(f"under {wanted.strategy} the plugin does not read {', '.join(wanted.ignored)}")
    if "vision_config" in config:
        notes.append("shapes of images and videos are not counted")
    return notes


def gib(value: int) -> str:
    """Bytes in GiB with one decimal."""
    return f"{value / GIB:.1f} GiB"


def _facts(found: Parts) -> dict[str, Any]:
    names = ("card", "weights", "profile", "cache", "state", "graphs", "shapes", "reserved", "left", "one_sequence")
    return {**{name: getattr(found, name) for name in names}, "full_sequences": round(found.full_sequences, 2)}
