"""What is asked of a model and what it answers, and one request on its way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from operator import index
from typing import Literal, Protocol

from gaudi3_scale.errors import ConfigError, TrainerError

Prompt = str | Sequence[int]
FinishReason = Literal["stop", "length", "error"]


class ServerBusy(TrainerError):
    """As many requests wait as may: send it again later, or raise max_waiting."""


class ServerClosed(TrainerError):
    """The server was closed before the answer was complete."""


@dataclass(frozen=True)
class Request:
    """A prompt, as text or token ids, with limits of its own."""

    prompt: Prompt
    max_new_tokens: int = 128
    temperature: float = 0.0
    """0 takes the likeliest token each time."""
    top_p: float = 1.0
    """The share of probability from which a token is drawn."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer; they are not part of it."""
    seed: int | None = None
    """Of this request's draws; the same seed draws the same, whatever else is in the batch."""

    def __post_init__(self) -> None:
        if isinstance(self.stop, str):
            object.__setattr__(self, "stop", (self.stop,))
        self._numbers()
        wrong = [
            (self.max_new_tokens < 1, f"max_new_tokens is {self.max_new_tokens}: give at least 1"),
            (len(self.prompt) == 0, "the prompt is empty: give a text or token ids"),
            (not (self.temperature >= 0 and math.isfinite(self.temperature)), "temperature must be 0 or more"),
            (not 0 < self.top_p <= 1, f"top_p is {self.top_p:g}: give above 0 up to 1"),
            (not -(2**63) <= (self.seed or 0) < 2**63, f"seed is {self.seed}: give one of 64 bits"),
            ("" in self.stop, "a text of stop is empty: remove it"),
        ]
        for found, message in wrong:
            if found:
                raise ConfigError(f"{message[:1].upper()}{message[1:]}.")

    def _numbers(self) -> None:
        """Values of another type, in one sentence; token ids are those of any sequence, such as a tensor's."""
        if not isinstance(self.prompt, str):
            try:
                object.__setattr__(self, "prompt", tuple(map(index, () if self.prompt is None else self.prompt)))
            except TypeError:
                raise ConfigError(f"The prompt is {self.prompt!r:.60}: give a text or token ids.") from None
        whole = {"max_new_tokens": self.max_new_tokens, "seed": 0 if self.seed is None else self.seed}
        for name, value in whole.items():
            if not isinstance(value, int) or isinstance(value, bool):
                raise ConfigError(f"{name} is {value!r}: give a whole number.")
        for name, number in (("temperature", self.temperature), ("top_p", self.top_p)):
            if not isinstance(number, int | float):
                raise ConfigError(f"{name} is {number!r}: give a number.")
        if not isinstance(self.stop, list | tuple) or not all(isinstance(each, str) for each in self.stop):
            raise ConfigError(f"stop is {self.stop!r:.60}: give texts.")


@dataclass(frozen=True)
class Completion:
    """A whole answer."""

    text: str
    """Empty where the folder has no tokenizer."""
    token_ids: tuple[int, ...]
    """With the token that ended it, if one did."""
    prompt_tokens: int
    finish_reason: FinishReason
    error: Exception | None = None
    """Why there is no answer, where the caller asked to have errors kept (`keep_errors`)."""


@dataclass(frozen=True)
class AnswerPiece:
    """What came of an answer since the piece before. Its text may lag behind its tokens, as characters have several."""

    text: str
    token_ids: tuple[int, ...]


Listener = Callable[[AnswerPiece], None]


@dataclass(eq=False)
class Ticket:
    """One request on its way; `answer` ends with a completion, an error, or cancelled."""

    request: Request
    tokens: tuple[int, ...]
    """Of the prompt."""
    listener: Listener | None = None
    answer: Future[Completion] = field(default_factory=Future)
    """Cancel it, and the request leaves its batch before the next step."""

    def fail(self, error: BaseException) -> None:
        """End it with an error, unless it has ended."""
        if not self.answer.done():
            try:
                self.answer.set_exception(error)
            except Exception:  # cancelled in between
                return

    def finish(self, completion: Completion) -> None:
        """End it with its answer, unless it was cancelled."""
        if not self.answer.done():
            try:
                self.answer.set_result(completion)
            except Exception:  # cancelled in between
                return


class Engine(Protocol):
    """What computes the answers."""

    def submit(self, request: Request, listener: Listener | None = None) -> Ticket:
        """Begin a request. Raises ServerBusy, ServerClosed, or ConfigError for one that can never be answered."""
        ...

    def close(self) -> None:
        """End everything; what is under way ends with ServerClosed."""
        ...
