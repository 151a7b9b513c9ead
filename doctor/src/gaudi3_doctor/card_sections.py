"""The sections that compute on the cards: what they try, and what of the answers is odd."""

from __future__ import annotations

import glob
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from .cards import held_cards, translated
from .children import PACKAGE, Bench, Child, bench
from .consented import CONSENTED, Step
from .host import Host, Options, Result, content, failure
from .job_status import FILE, JobStatus, StatusError, read
from .sections import CONSENTS

SINGLE = ("numbers", "first_step", "copies", "types", "attention", "memory", "experts", "compiled")
ASK = "computes on the cards, so it needs --cards (doctor_cards)"
TRANSLATED = "translated-iommu"
_GRACE = 40.0
"""Seconds that torchrun and a job get to end in order; torchrun gives its workers 30."""
Measured = tuple[str, Result, float]


def on_cards(host: Host, options: Options, log: Callable[[str], None] | None = None) -> Iterator[Measured]:
    """Each section of the cards with its result and its seconds."""
    left = [*SINGLE, *(step.key for step in STEPS)]
    why = ASK if not options.cards else _obstacle(host, options)
    if why:
        yield from ((key, Result(not_tried=why), 0.0) for key in left)
        return
    try:
        with bench(host, options) as started:
            for key, result, seconds in _tried(started, options, log or (lambda title: None)):
                left.remove(key)
                yield key, result, seconds
    except Exception as error:  # whatever a machine that nobody has seen makes of it
        yield from ((key, failure(error), 0.0) for key in left)


def _obstacle(host: Host, options: Options) -> str:
    """Why the cards cannot be used now; empty where they can."""
    if not host.program(*options.pythons):
        return f"there is no Python at {' or '.join(options.pythons) or 'the given place'}"
    held = held_cards(host)
    if held:
        return f"cards are in use ({'; '.join(held)}): stop what uses them"
    spoiled = translated(host)
    if spoiled and TRANSLATED not in options.consent:
        return (
            f"the IOMMU translates addresses of {len(spoiled)} cards, and taking such a card has brought a host down: "
            f"boot with iommu=pt, or give --consent {TRANSLATED} (doctor_consent)"
        )
    return ""


def _tried(bench: Bench, options: Options, log: Callable[[str], None]) -> Iterator[Measured]:
    log("Probes of one card")
    started = time.monotonic()
    answers = bench.single(SINGLE)
    count = _device_count(answers)
    if "data" in answers.get("first_step", {}):
        answers["first_step"]["data"]["trainer"] = _trainer(bench)
    for key in SINGLE:
        answer = answers[key]
        yield key, _result(answer), float(answer.get("seconds", time.monotonic() - started))
    for step in STEPS:
        started = time.monotonic()
        if step.consent and step.consent not in options.consent:
            about = CONSENTS[step.consent]
            result = Result(not_tried=f"{about}, so it needs --consent {step.consent} (doctor_consent)")
        elif count < step.cards:
            result = Result(not_tried=f"needs {step.cards} cards, and torch counts {count}")
        else:
            log(step.key)
            try:
                result = step.run(bench, count)
            except Exception as error:  # it costs this section alone
                result = failure(error)
        yield step.key, result, time.monotonic() - started


def _result(answer: dict[str, Any]) -> Result:
    if "data" in answer and "error" not in answer:
        data = dict(answer["data"])
        odd = [str(each) for each in data.pop("odd", [])]
        trained = data.get("trainer")
        if isinstance(trained, dict) and trained.get("exit_code"):
            odd.append(f"gaudi3-train fit ends with exit code {trained['exit_code']}")
        if isinstance(trained, dict) and trained.get("status_error"):
            odd.append(trained["status_error"])
        return Result(data, odd)
    return Result(dict(answer), [f"it fails: {_first_line(answer.get('error'))}"])


def _device_count(answers: dict[str, dict[str, Any]]) -> int:
    identity = answers.get("numbers", {}).get("data", {}).get("identity", {})
    return int(identity.get("device_count", 0))


def _trainer(bench: Bench) -> dict[str, Any]:
    """Two steps of `gaudi3-train fit` on one card, where that Python has the trainer."""
    found = bench.host.run(
        [bench.python, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('gaudi3_scale'))"],
        30, bench.user, bench.environment, bench.folder,
    )  # fmt: skip
    if found.code != 0:
        return {"missing": "that Python has no gaudi3_scale"}
    text = bench.put("text.txt", b"One sentence after the other makes a text to train on.\n" * 400)
    out = os.path.join(bench.folder, "job")
    small = (
        "model.hidden_size=64", "model.intermediate_size=128", "model.layers=2", "model.sequence_length=64",
        "train.max_steps=2", "train.micro_batch_size=2", "data.validation_samples=2", "metrics.enabled=false",
    )  # fmt: skip
    outcome = bench.host.run(
        [bench.python, "-m", "gaudi3_scale", "fit", "device=hpu", f"output_dir={out}", f"data.source={text}", *small],
        bench.patience, bench.user, bench.environment, bench.folder, _GRACE,
    )  # fmt: skip
    status: JobStatus = {}
    unreadable = ""
    try:
        status = read(os.path.join(out, FILE))
    except StatusError as error:
        unreadable = str(error)
    return {
        "exit_code": outcome.code if outcome.code is not None else -1,
        "seconds": round(outcome.seconds, 2),
        "status": status or None,
        "status_error": unreadable or None,
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


def _collective(bench: Bench, count: int) -> Result:
    children = bench.group(("collective",), count)
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


def _sharded(bench: Bench, count: int) -> Result:
    names = ("sharded", "compiled_sharded")
    children = bench.group(names, 2)
    result = Result({"ranks": [_answers(child) for child in children]}, _failures(children, names))
    difference = children[0].answers.get("sharded", {}).get("data", {}).get("largest_difference", 0.0)
    if not difference < 0.05:
        result.odd.append(f"the losses of sharded and of data parallel training differ by {difference}")
    return result


def _elastic(bench: Bench, count: int) -> Result:
    """torchrun with one restart, whose last worker fails at its first start."""
    folder = os.path.join(bench.folder, f"elastic-{time.monotonic_ns()}")
    bench.host.run(["mkdir", folder], 10, bench.user)
    outcome = bench.host.run(
        [
            bench.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1",
            "-m", f"{PACKAGE}.elastic", folder,
        ],
        bench.patience, bench.user, bench.environment, bench.folder, _GRACE,
    )  # fmt: skip
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "elastic-*.json"))):
        found.append(json.loads(content(path)))
    result = Result({"ranks": found, "exit_code": outcome.code, "last_words": (outcome.out + outcome.err)[-4000:]})
    if outcome.code != 0:
        result.odd.append(f"torchrun with a restart fails: {outcome.failure}")
    elif [each["sum"] for each in found] != [3.0, 3.0] or {each["starts"] for each in found} != {2}:
        result.odd.append("torchrun ended well, but the workers were not restarted into a working group")
    return result


STEPS = (
    Step("collective", _collective, 2),
    Step("sharded", _sharded, 2),
    Step("elastic", _elastic, 2),
    *CONSENTED,
)


def _answers(child: Child) -> dict[str, Any]:
    ended = {} if child.done else {"ending": child.ending(), "log": child.last_words()}
    return {**child.answers, **ended}


def _first_line(text: Any) -> str:
    lines = [line.strip() for line in str(text or "no message").splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"
