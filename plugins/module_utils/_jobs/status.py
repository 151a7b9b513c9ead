# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The one reader of ``status.json``, in which a job says how far it is: the job's user may write anything there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._kinds import Kind, Number, count, exact, integer, mapping, moment, number, parsed, path, plain, text, truth
from .._progress.screen import roughly
from .files import read_regular

#: Name of the file in a job's folder.
FILE = "status.json"


def _software(value: object) -> Optional[dict[str, str]]:
    """Versions by the name of what has them."""
    if not isinstance(value, Mapping):
        return None
    found = {str(text(name, 100)): text(each, 100) for name, each in mapping(value).items()}
    return {name: each for name, each in list(found.items())[:32] if each is not None}


def _ranks(value: object) -> Optional[list[int]]:
    """Ranks that are named, 64 at most."""
    found = [integer(each) for each in value[:64]] if isinstance(value, list) else [None]
    return None if None in found else [each for each in found if each is not None]


def _nodes(value: object) -> Optional[list[str]]:
    """Nodes by the names that they call themselves, 16 at most."""
    found = [text(each, 120) for each in value[:16]] if isinstance(value, list) else [None]
    return None if None in found else [each for each in found if each is not None]


def _part(needed: Mapping[str, Kind], optional: Mapping[str, Kind]) -> Kind:
    """Reads a mapping of which some entries are needed, and which is nothing without one of them."""

    def read(value: object) -> Optional[dict[str, Any]]:
        given = mapping(value)
        known = {name: kind(given.get(name)) for name, kind in needed.items()}
        if None in known.values():
            return None
        others = {name: each for name, each in given.items() if name not in known and name not in optional}
        some = {name: kind(given[name]) for name, kind in optional.items() if name in given}
        return {**plain(others, 2), **some, **known}

    return read


_BATCH = _part({"micro_batch_size": count, "samples_per_step": count, "how": text}, {})
_COST = _part(
    {"spent": number, "currency": text, "price_per_hour": number},
    {"per_million_tokens": number, "price_source": text, "price_date": text},
)
_HANG = _part({"sentence": text, "kind": text, "certain": truth, "ranks": _ranks, "nodes": _nodes}, {"at": moment})
#: All that is read, in the order in which the trainer writes it. What is not named here is passed over.
FIELDS: dict[str, Kind] = {
    "schema": integer,
    "state": text,
    "step": count,
    "max_steps": count,
    "loss": number,
    "first_loss": number,
    "gradient_norm": number,
    "skipped_steps": count,
    "validation_loss": number,
    "baseline_loss": number,
    "tokens_per_second": number,
    "tokens_per_second_stepping": number,
    "mfu": number,
    "goodput": lambda value: plain(value, 2) if isinstance(value, Mapping) else None,
    "cost": _COST,
    "anomaly": lambda value: plain(value, 2) if isinstance(value, Mapping) else None,
    "peak_memory_bytes": count,
    "batch": _BATCH,
    "tokens": count,
    "world_size": count,
    "device": text,
    "hardware_name": text,
    "simulated": truth,
    "software": _software,
    "precision": text,
    "weights": text,
    "checkpoint": path,
    "checkpoint_step": count,
    "checkpoint_error": text,
    "uploaded_step": count,
    "upload_error": text,
    "resumed_from_step": count,
    "interruption": text,
    "hang": _HANG,
    "started_at": moment,
    "updated_at": moment,
    "invocation": exact,
    "error": text,
}


@dataclass(frozen=True)
class Status:
    """What a job says of itself; None, or nothing, where it does not say it or says something odd.

    ``values`` has what was said by its name in the file, in plain values that can be shown.
    """

    state: str = ""
    step: Optional[int] = None
    max_steps: Optional[int] = None
    loss: Optional[Number] = None
    tokens_per_second: Optional[Number] = None
    device: str = ""
    """What the device calls itself, or else its kind."""
    simulated: bool = False
    interruption: str = ""
    error: str = ""
    updated_at: Number = 0
    """Seconds since 1970, by a clock that may have been set since."""
    invocation: str = ""
    """What systemd calls the run of the unit in which this was written."""
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object) -> Optional[Status]:
        """From the parsed file, or from what a node answers; None for what is no mapping."""
        if not isinstance(value, Mapping):
            return None
        given = mapping(value)
        said = {name: kind(given[name]) for name, kind in FIELDS.items() if name in given}
        return cls(
            state=said.get("state") or "",
            step=said.get("step"),
            max_steps=said.get("max_steps"),
            loss=said.get("loss"),
            tokens_per_second=said.get("tokens_per_second"),
            device=said.get("hardware_name") or said.get("device") or "",
            simulated=said.get("simulated") is True,
            interruption=said.get("interruption") or "",
            error=said.get("error") or "",
            updated_at=said.get("updated_at") or 0,
            invocation=said.get("invocation") or "",
            values=said,
        )

    @classmethod
    def in_folder(cls, directory: str) -> Optional[Status]:
        """Of the job with this folder; None where there is none, or no small regular file that holds one."""
        content = read_regular(f"{directory}/{FILE}")
        return cls.of(parsed(content)) if content is not None else None

    def as_dict(self) -> dict[str, Any]:
        """As a module returns it: what was said, with null for what is odd."""
        return dict(self.values)


def time_left(status: Status) -> Optional[float]:
    """Seconds that the steps which are left take at the rate so far; None where the job does not say enough."""
    tokens, step, last, rate = status.values.get("tokens"), status.step, status.max_steps, status.tokens_per_second
    if not tokens or not step or not last or not rate or rate <= 0 or last <= step:
        return None
    return float((last - step) * tokens / step / rate)


def progress_line(host: str, status: Optional[Status]) -> Optional[str]:
    """How far a job is, in one line; None before its trainer has done a step.

    A script that trains for a number of epochs need not know its last step.
    """
    if status is None or not status.step:
        return None
    parts = ["step {0}{1}".format(status.step, f"/{status.max_steps}" if status.max_steps else "")]
    if status.loss is not None:
        parts.append(f"loss {status.loss:.3f}")
    if status.tokens_per_second is not None:
        parts.append(f"{status.tokens_per_second:,.0f} tokens/s")
    left = time_left(status)
    if left is not None:
        parts.append(f"{roughly(left)} left")  # with "about" the line of the demo is longer than 80 characters
    simulated = "simulated " if status.simulated else ""
    return "{0}: {1}{2}".format(host, ", ".join(parts), f" ({simulated}{status.device})" if status.device else "")
