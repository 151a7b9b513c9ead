"""What the file status.json of a job says: the one reader of it, for the trainer and for this package on its own.

The file may be torn by a full disk, come from another version, or belong to another user: what it holds has the types
that are named here, or is refused in one sentence.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from typing import Any, Dict, List, Optional, TypedDict, Union, cast, get_args, get_origin, get_type_hints

FILE = "status.json"
STATES = ("starting", "running", "finished", "failed", "interrupted", "spare")
MAX_BYTES = 2**20
REMEDY = "delete it; a running job writes it again."


class StatusError(Exception):
    """The file cannot be read, or is no status; the message is one sentence."""


class JobStatus(TypedDict, total=False):
    """The keys whose types are checked; others are left as they are. Any of them may be missing."""

    schema: int
    state: str
    """One of `STATES`."""
    step: Optional[int]
    max_steps: Optional[int]
    loss: Optional[float]
    first_loss: Optional[float]
    gradient_norm: Optional[float]
    skipped_steps: Optional[int]
    validation_loss: Optional[float]
    baseline_loss: Optional[float]
    tokens_per_second: Optional[float]
    tokens_per_second_stepping: Optional[float]
    mfu: Optional[float]
    goodput: Optional[Dict[str, Any]]
    cost: Optional[Dict[str, Any]]
    anomaly: Optional[Dict[str, Any]]
    peak_memory_bytes: Optional[int]
    batch: Optional[Dict[str, Any]]
    tokens: Optional[int]
    world_size: Optional[int]
    device: Optional[str]
    hardware_name: Optional[str]
    simulated: Optional[bool]
    software: Optional[Dict[str, Any]]
    precision: Optional[str]
    weights: Optional[str]
    checkpoint: Optional[str]
    checkpoint_step: Optional[int]
    checkpoint_error: Optional[str]
    uploaded_step: Optional[int]
    upload_error: Optional[str]
    resumed_from_step: Optional[int]
    interruption: Optional[str]
    hang: Optional[Dict[str, Any]]
    """Who held up the others when nothing moved any more: its `sentence` is for readers."""
    started_at: float
    """Seconds since 1970, as `updated_at`."""
    updated_at: float
    invocation: str
    error: Optional[str]


_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", dict: "an object"}


def read(path: Union[str, os.PathLike[str]]) -> JobStatus:
    """The status of a job; empty where there is no such file.

    Raises:
        StatusError: It cannot be read, is no regular file, or `parse` refuses what it holds.
    """
    where = os.fspath(path)
    try:
        handle = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise StatusError(f"{where} is no regular file: {REMEDY}")
        with os.fdopen(handle, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StatusError(f"{where} is a link, and no regular file: {REMEDY}") from None
        raise StatusError(f"{where} cannot be read ({error.strerror}): give this user the right to.") from None
    return parse(content, where)


def parse(content: bytes, where: str) -> JobStatus:
    """What these bytes say; `where` names them in the sentence of a StatusError."""
    if len(content) > MAX_BYTES:
        raise StatusError(f"{where} is longer than {MAX_BYTES:,} bytes, so it is no status of a job: {REMEDY}")
    try:
        found = json.loads(content, parse_constant=_no_number, parse_int=_whole, parse_float=_finite)
    except _NumberError as error:
        raise StatusError(f"{where} has the number {error}, which no status has: {REMEDY}") from None
    except (ValueError, RecursionError):
        raise StatusError(f"{where} is not JSON, so it is no status of a job: {REMEDY}") from None
    if not isinstance(found, dict):
        raise StatusError(f"{where} is no JSON object, so it is no status of a job: {REMEDY}")
    for name, kinds in _kinds().items():
        if name in found and not any(_is(found[name], kind) for kind in kinds):
            wanted = " or ".join("null" if kind is type(None) else _NAMES[kind] for kind in kinds)
            raise StatusError(f"{where} has {name!r} as {_shown(found[name])}, which has to be {wanted}: {REMEDY}")
    if "state" in found and found["state"] not in STATES:
        raise StatusError(f"{where} has the state {_shown(found['state'])}, not one of {', '.join(STATES)}: {REMEDY}")
    return cast(JobStatus, found)


def _kinds() -> Dict[str, List[type]]:
    """The types that each key may have."""
    hints = get_type_hints(JobStatus)
    return {
        name: [get_origin(each) or each for each in (get_args(hint) if get_origin(hint) is Union else (hint,))]
        for name, hint in hints.items()
    }


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) is int or (type(value) is float and math.isfinite(value))
    return type(value) is kind


def _shown(value: Any) -> str:
    text = json.dumps(value).replace("\x7f", "\\u007f")  # ASCII, and nothing that steers a terminal
    return text if len(text) <= 60 else f"{text[:57]}..."


def _no_number(name: str) -> Any:
    raise ValueError(name)


class _NumberError(ValueError):
    """A number that cannot be reckoned with; the message is its digits."""


def _whole(digits: str) -> int:
    """Of 64 bits: of a longer one no float can be made, wherever in the file it stands."""
    number = int(digits) if len(digits) <= 20 else 2**63
    if abs(number) >= 2**63:
        raise _NumberError(digits if len(digits) <= 40 else f"{digits[:37]}...")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _NumberError(digits if len(digits) <= 40 else f"{digits[:37]}...")
    return number
