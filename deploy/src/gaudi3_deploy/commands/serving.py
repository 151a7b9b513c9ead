"""serving-plan: whether a model fits on cards under vLLM, before anything is started."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._serving import warmup
from gaudi3_deploy.collection._serving.buckets import COUNTABLE, Buckets
from gaudi3_deploy.collection._serving.footprint import longest
from gaudi3_deploy.collection._serving.warmup import GIB, Parts, ServingPlan, gib
from gaudi3_deploy.collection._serving.weights import read_config, weights_bytes
from gaudi3_deploy.errors import UsageError

SEQUENCES = 256
"""vLLM's default of a server on a platform that names no memory, as the Gaudi plugin does."""


@app.command("serving-plan")
def serving_plan(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of a model, as `gaudi3-train export` writes it.")],
    cards: Annotated[int, typer.Option(help="Cards that share the model (tensor parallelism).")] = 1,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a sequence, prompt and answer [default: max_position_embeddings].")
    ] = None,
    sequences: Annotated[int, typer.Option(help="Sequences at once (--max-num-seqs).")] = SEQUENCES,
    tokens: Annotated[
        int | None, typer.Option(help="Tokens of a step (--max-num-batched-tokens) [default: 2048, vLLM's own].")
    ] = None,
    card: Annotated[str, typer.Option(help="gaudi3 or gaudi2.")] = "gaudi3",
    card_gib: Annotated[float | None, typer.Option(help="Memory of a card that a program may have, in GiB.")] = None,
    cache_dtype: Annotated[str, typer.Option(help="Of the cache (--kv-cache-dtype): auto or fp8_inc.")] = "auto",
    strategy: Annotated[str, typer.Option(help="Bucket strategy: exp, the plugin's default, or lin.")] = "exp",
    bucket: Annotated[
        list[str] | None, typer.Option(metavar="VLLM_..._BUCKET_...=NUMBER", help="A bucket variable; repeatable.")
    ] = None,
    reserve: Annotated[float, typer.Option(help="VLLM_GRAPH_RESERVED_MEM, a share.")] = warmup.RESERVED,
    utilisation: Annotated[float, typer.Option(help="--gpu-memory-utilization, a share.")] = warmup.UTILISATION,
    weights_gib: Annotated[
        float | None, typer.Option(help="Size of all weights, where the folder has a config.json alone.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell whether weights, cache and warm-up of a model fit on cards under vLLM; nothing is started.

    Exit codes: 0 it fits as asked, 1 it does not, 2 an input is wrong or missing.
    """
    settings: Context = context.obj
    try:
        config = read_config(str(folder))
        found = warmup.plan(
            config,
            weights_bytes=_weights_bytes(folder, weights_gib),
            card_bytes=_card_bytes(card, card_gib),
            cards=cards,
            max_model_len=_length(config, length),
            max_num_seqs=sequences,
            max_num_batched_tokens=tokens,
            dtype="bfloat16",
            buckets=Buckets(strategy, _variables(bucket or [])),
            cache_dtype=cache_dtype,
            utilisation=utilisation,
            reserved=reserve,
        )
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    if as_json:
        print_json(found.as_facts())
    else:
        _show(settings, found, cards)
    if not found.fits:
        raise typer.Exit(1)


def _card_bytes(card: str, given: float | None) -> int:
    if card not in warmup.CARD_BYTES:
        raise UsageError(f"--card is {card!r}: give gaudi3 or gaudi2.")
    if given is not None and not 0 < given < math.inf:
        raise UsageError(f"--card-gib is {given:g}: give what a card has, above 0.")
    return warmup.CARD_BYTES[card] if given is None else int(given * GIB)


def _weights_bytes(folder: Path, given: float | None) -> int:
    if given is not None and not 0 < given < math.inf:
        raise UsageError(f"--weights-gib is {given:g}: give what all weights have, above 0.")
    return weights_bytes(str(folder)) if given is None else int(given * GIB)


def _length(config: dict[str, object], given: int | None) -> int:
    most = longest(config)
    if given is not None and given > most:
        raise UsageError(f"--length is {given}, and the model was made for {most} tokens: give at most {most}.")
    return most if given is None else given


def _variables(given: list[str]) -> dict[str, int]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not value.isascii() or not value.isdigit():
            raise UsageError(f"--bucket is {each!r}: give NAME=NUMBER, as VLLM_DECODE_BS_BUCKET_STEP=32.")
        found[name] = int(value)
    return found


def _show(settings: Context, found: ServingPlan, cards: int) -> None:
    columns = [("as asked", found.asked)]
    if found.proposed is not None and not found.fits:
        columns.append(("proposed", found.proposed))
    table = Table(
        Column(f"each of {cards} cards" if cards > 1 else "the card", no_wrap=True),
        *(Column(name, justify="right", no_wrap=True) for name, parts in columns),
        box=None,
        pad_edge=False,
    )
    for name, *cells in zip(
        ("memory", "weights", "profile run", "cache", "recurrent state", "left for graphs", "shapes", "graphs, up to"),
        *(_cells(parts) for name, parts in columns),
        strict=True,
    ):
        if name != "recurrent state" or found.asked.state:
            table.add_row(name, *cells)
    settings.console.print(table)
    counts = ", ".join(f"{name} {_number(count)}" for name, count in found.counts.items())
    lines = [f"shapes of each strategy's defaults: {counts}", found.sentence, *found.notes]
    if not found.fits and found.environment:
        lines += [f"{name}={value}" for name, value in found.environment.items()]
    for line in lines:
        settings.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _cells(parts: Parts) -> tuple[str, ...]:
    sizes = (parts.card, parts.weights, parts.profile, parts.cache, parts.state, parts.left)
    return (*map(gib, sizes), _number(parts.shapes), "?" if parts.shapes is None else gib(parts.graphs))


def _number(count: int | None) -> str:
    return f"over {COUNTABLE:,}" if count is None else str(count)
