"""The sections that compute on the cards: what they try, and what of the answers is odd."""

from __future__ import annotations

import glob
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from .cards import held_cards
from .children import PACKAGE, Bench, Child, bench
from .consented import CONSENTED
from .host import Host, Options, Result

SINGLE = ("numbers", "first_step", "copies", "types", "attention", "memory", "experts", "compiled")
ALONE = ("collective", "sharded", "elastic")
ASK = "computes on the cards, so it needs --cards (doctor_cards)"
Found = tuple[str, Result, float]


def on_cards(host: Host, options: Options, say: Callable[[str], None] | None = None) -> Iterator[Found]:
    """Each section of the cards with its result and its seconds."""
    keys = (*SINGLE, *ALONE)
    why = ASK if not options.cards else _obstacle(host, options)
    if why:
        yield from ((key, Result(not_tried=why), 0.0) for key in (*keys, *(each.key for each in CONSENTED)))
        return
    try:
        with bench(host, options) as place:
            yield from _tried(place, options, say or (lambda title: None))
    except OSError as error:
        yield from ((key, Result({"error": f"{type(error).__name__}: {error}"}), 0.0) for key in keys)


def _obstacle(host: Host, options: Options) -> str:
    """Why the cards cannot be used now; empty where they can."""
    if not host.program(*options.pythons):
        return f"there is no Python at {' or '.join(options.pythons) or 'the given place'}"
    held = held_cards(host)
    return f"cards are in use ({'; '.join(held)}): stop what uses them" if held else ""


def _tried(place: Bench, options: Options, say: Callable[[str], None]) -> Iterator[Found]:
    say("Probes of one card")
    started = time.monotonic()
    answers = place.single(SINGLE)
    count = _device_count(answers)
    if "data" in answers["first_step"]:
        answers["first_step"]["data"]["trainer"] = _trainer(place)
    for key in SINGLE:
        answer = answers[key]
        yield key, _result(answer), float(answer.get("seconds", time.monotonic() - started))
    steps: list[tuple[str, Callable[[Bench, int], Result]]] = [
        ("collective", _collective),
        ("sharded", _sharded),
        ("elastic", _elastic),
    ]
    for key, step in steps:
        say(key)
        started = time.monotonic()
        if count < 2:
            yield key, Result(not_tried=f"needs two cards, and torch counts {count}"), 0.0
        else:
            yield key, step(place, count), time.monotonic() - started
    for each in CONSENTED:
        if each.consent not in options.consent:
            yield (
                each.key,
                Result(not_tried=f"{each.about}, so it needs --consent {each.consent} (doctor_consent)"),
                0.0,
            )
        elif count < each.cards:
            yield each.key, Result(not_tried=f"needs {each.cards} cards, and torch counts {count}"), 0.0
        else:
            say(each.key)
            started = time.monotonic()
            yield each.key, each.run(place, count), time.monotonic() - started


def _result(answer: dict[str, Any]) -> Result:
    if "data" in answer and "error" not in answer:
        data = dict(answer["data"])
        odd = [str(each) for each in data.pop("odd", [])]
        trained = data.get("trainer")
        if isinstance(trained, dict) and trained.get("exit_code"):
            odd.append(f"gaudi3-train fit ends with exit code {trained['exit_code']}")
        return Result(data, odd)
    return Result(dict(answer), [f"it fails: {_first_line(answer.get('error'))}"])


def _device_count(answers: dict[str, dict[str, Any]]) -> int:
    identity = answers.get("numbers", {}).get("data", {}).get("identity", {})
    return int(identity.get("device_count", 0))


def _trainer(place: Bench) -> dict[str, Any]:
    """Two steps of `gaudi3-train fit` on one card, where that Python has the trainer."""
    probe = place.host.run(
        [place.python, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('gaudi3_scale'))"],
        30, place.user, place.environment, place.folder,
    )  # fmt: skip
    if probe.code != 0:
        return {"missing": "that Python has no gaudi3_scale"}
    text = place.put("text.txt", b"One sentence after the other makes a text to train on.\n" * 400)
    out = os.path.join(place.folder, "job")
    small = (
        "model.hidden_size=64", "model.intermediate_size=128", "model.layers=2", "model.sequence_length=64",
        "train.max_steps=2", "train.micro_batch_size=2", "data.validation_samples=2", "metrics.enabled=false",
    )  # fmt: skip
    outcome = place.host.run(
        [place.python, "-m", "gaudi3_scale", "fit", "device=hpu", f"output_dir={out}", f"data.source={text}", *small],
        place.patience, place.user, place.environment, place.folder,
    )  # fmt: skip
    status = place.host.read(os.path.join(out, "status.json")[len(place.host.root) :])
    return {
        "exit_code": outcome.code if outcome.code is not None else -1,
        "seconds": round(outcome.seconds, 2),
        "status": json.loads(status) if status else None,
        "last_words": (outcome.out + outcome.err)[-2000:],
    }


def _failures(children: list[Child], names: tuple[str, ...]) -> list[str]:
    """Sentences on ranks that did not answer."""
    found = []
    for rank, child in enumerate(children):
        for name in ("start", *names):
            answer = child.answers.get(name)
            if answer is None or "error" in answer:
                words = _first_line(answer["error"]) if answer else f"the process {child.ending()}"
                found.append(f"rank {rank} fails at {name}: {words}")
                break
    return found


def _collective(place: Bench, count: int) -> Result:
    children = place.group(("collective",), count)
    ranks = [_answers(child) for child in children]
    result = Result({"world_size": count, "ranks": ranks}, _failures(children, ("collective",)))
    wrong = [str(rank) for rank, each in enumerate(ranks) if each.get("collective", {}).get("data", {}).get("wrong")]
    if wrong:
        result.odd.append(f"the sum of an all-reduce is wrong on ranks {', '.join(wrong)}")
    for rank, each in enumerate(ranks):
        identity = each.get("start", {}).get("data", {})
        asked = identity.get("variables", {}).get("HLS_MODULE_ID")
        got = [card.get("module_id") for card in identity.get("cards", [])]
        if asked is not None and got and got[0] is not None and got[0] != asked:
            result.odd.append(f"rank {rank} asked for module {asked} and has the card of module {got[0]}")
    return result


def _sharded(place: Bench, count: int) -> Result:
    names = ("sharded", "compiled_sharded")
    children = place.group(names, 2)
    result = Result({"ranks": [_answers(child) for child in children]}, _failures(children, names))
    difference = children[0].answers.get("sharded", {}).get("data", {}).get("largest_difference", 0.0)
    if not difference < 0.05:
        result.odd.append(f"the losses of sharded and of data parallel training differ by {difference}")
    return result


def _elastic(place: Bench, count: int) -> Result:
    """torchrun with one restart, whose last worker fails at its first start."""
    folder = os.path.join(place.folder, f"elastic-{time.monotonic_ns()}")
    place.host.run(["mkdir", folder], 10, place.user)
    outcome = place.host.run(
        [
            place.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1",
            os.path.join(place.folder, PACKAGE, "elastic.py"), folder,
        ],
        place.patience, place.user, place.environment, place.folder,
    )  # fmt: skip
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "elastic-*.json"))):
        with open(path, encoding="utf-8") as file:
            found.append(json.load(file))
    result = Result({"ranks": found, "exit_code": outcome.code, "last_words": (outcome.out + outcome.err)[-4000:]})
    if outcome.code != 0:
        result.odd.append(f"torchrun with a restart fails: {outcome.failure}")
    elif [each["sum"] for each in found] != [3.0, 3.0] or {each["starts"] for each in found} != {2}:
        result.odd.append("torchrun ended well, but the workers were not restarted into a working group")
    return result


def _answers(child: Child) -> dict[str, Any]:
    ended = {} if child.done else {"ending": child.ending(), "log": child.last_words()}
    return {**child.answers, **ended}


def _first_line(text: Any) -> str:
    lines = [line.strip() for line in str(text or "no message").splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"
