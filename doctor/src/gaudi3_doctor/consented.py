"""What is tried only with consent: killing a holder, losing a peer, collectives over a part of the node."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .cards import ACCEL
from .children import Bench, Child, end
from .host import Result

_OFFSETS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZES = (3, 5, 6, 7)
_WATCHED = 90.0


@dataclass(frozen=True)
class Step:
    """A section that is tried after the probes of one card: how, and how many cards and which consent it needs."""

    key: str
    run: Callable[[Bench, int], Result]
    cards: int
    consent: str = ""


def killed_holder(bench: Bench, count: int) -> Result:
    """Kill a holder, watch the status of its card, and try to get the card at several times after that."""
    offsets = _OFFSETS[:2] if bench.options.quick else _OFFSETS
    moment = os.path.join(bench.folder, f"moment-{time.monotonic_ns()}")
    holder = bench.start("hold", ("hold",), role="holder")
    tries: list[Child] = []
    try:
        _until_begun("hold", [holder], bench.patience)
        identity = holder.answers.get("start", {}).get("data")
        if holder.begun != "hold" or identity is None:
            return Result({"holder": holder.answers, "log": holder.last_words()}, ["the holder got no card"])
        card: dict[str, Any] = next(iter(identity["cards"]), {})
        # That card or none: with only the first of these the bridge takes any free one in its place.
        choices = ("HLS_MODULE_ID", "HABANA_VISIBLE_MODULES") if card.get("module_id") is not None else ()
        more = {name: str(card["module_id"]) for name in choices}
        for each in offsets:
            tries.append(bench.start("hold", ("acquire",), more, role="other", moment=moment, after=each))
        _until_begun("acquire", tries, bench.patience)
        os.kill(holder.process.pid, signal.SIGKILL)
        killed = time.time()
        os.replace(bench.put("moment.new", repr(killed).encode()), moment)
        statuses = _watch(bench, card, killed, tries)
        bench.follow(tries, 120.0)
    finally:
        end([holder, *tries])
    answers = [child.answers.get("acquire", {"error": f"the process {child.ending()}"}) for child in tries]
    result = Result({"card": card, "statuses": statuses, "tries": answers})
    got = [each["data"]["began"] for each in answers if each.get("data", {}).get("failure") == ""]
    failed = [each["data"]["began"] for each in answers if each.get("data", {}).get("failure")]
    result.data["first_acquired_after_seconds"] = min(got) if got else None
    if failed:
        result.odd.append(f"a card could not be acquired {max(failed):.1f} s after its holder was killed")
    if not got:
        result.odd.append("the card was not acquired again in any of the tries")
    return result


def lost_peer(bench: Bench, count: int) -> Result:
    """What the other process says when its peer is killed, and when it does not answer."""
    patience = 30.0 if bench.options.quick else 300.0
    result = Result()
    for name in ("killed_peer", "stopped_peer"):
        children = bench.group((name,), 2, patience)
        kept = children[0].answers.get(name) or {"error": f"the process {children[0].ending()}"}
        result.data[name] = {**kept, "log": children[0].last_words(), "waited_at_most_seconds": patience}
        if "data" not in kept:
            result.odd.append(f"{name}: {str(kept['error']).splitlines()[0][:200]}")
    return result


def part_of_node(bench: Bench, count: int) -> Result:
    """A collective over numbers of cards that are no half, quarter or whole of a node."""
    result = Result()
    for size in (each for each in _SIZES if each <= count):
        children = bench.group(("collective",), size)
        answers = [child.answers for child in children]
        good = [each for each in answers if each.get("collective", {}).get("data", {}).get("wrong") == 0]
        result.data[str(size)] = {"ranks": answers, "log": children[0].last_words() if len(good) < size else ""}
        if len(good) < size:
            result.odd.append(f"a collective over {size} cards fails on {size - len(good)} of them")
    return result


def _until_begun(name: str, children: list[Child], seconds: float) -> None:
    """Wait until all children have begun a probe, one has ended, or time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for child in children:
            child.look()
        if all(child.begun == name for child in children) or any(
            child.process.poll() is not None for child in children
        ):
            return
        time.sleep(0.05)


def _watch(bench: Bench, card: dict[str, Any], killed: float, tries: list[Child]) -> list[dict[str, Any]]:
    """The card's status each time that it changes, until a try got it or time is up."""
    name = os.path.basename(str(card.get("file", "")))
    found: list[dict[str, Any]] = []
    while time.time() < killed + _WATCHED and any(child.process.poll() is None for child in tries):
        status = bench.host.value(f"{ACCEL}/{name}/device/status") if name else None
        if not found or found[-1]["status"] != status:
            found.append({"after_seconds": round(time.time() - killed, 3), "status": status})
        for child in tries:
            child.look()
        if any(child.answers.get("acquire", {}).get("data", {}).get("failure") == "" for child in tries):
            break
        time.sleep(0.02)
    end([child for child in tries if "acquire" not in child.answers])
    return found


CONSENTED = (
    Step("killed_holder", killed_holder, 1, "kill-holder"),
    Step("lost_peer", lost_peer, 2, "lost-peer"),
    Step("part_of_node", part_of_node, 3, "part-of-node"),
)
