"""`OptimizedInferenceServer`: prompts in, answers out, many at once."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.serving.request import AnswerPiece, Completion, Engine, Prompt, Request, ServerBusy, Ticket

EngineName = Literal["auto", "vllm", "transformers"]
DEVICES = ("auto", "hpu", "cuda", "cpu")
_LAST = None


class OptimizedInferenceServer:
    """A model that answers many prompts at once, in this process.

    Requests of all threads and tasks share batches: one that arrives late joins between two tokens, one that is
    cancelled leaves, and an error ends its own request alone. With vLLM installed it is vLLM, else a batcher over
    transformers.

    >>> from gaudi3_scale.serving import OptimizedInferenceServer
    >>> with OptimizedInferenceServer("out/model", max_batch_size=32) as server:  # doctest: +SKIP
    ...     server.generate(["A river", "A mountain"], max_new_tokens=16)
    """

    def __init__(
        self,
        model_path: str | Path,
        max_batch_size: int = 32,
        *,
        engine: EngineName = "auto",
        device: str = "auto",
        dtype: str = "auto",
        max_length: int | None = None,
        max_waiting: int = 1024,
        engine_options: dict[str, Any] | None = None,
    ) -> None:
        """Load a folder as `gaudi3-train export` writes it.

        Args:
            model_path: The folder; nothing is fetched, and no code in it is run.
            max_batch_size: Requests that are computed at once.
            engine: `vllm`, `transformers`, or `auto`: vLLM where it is installed.
            device: Of the batcher: auto, hpu, cuda or cpu. vLLM finds its own.
            dtype: `auto` takes the folder's.
            max_length: Tokens of a prompt with its answer; the model's own length without it.
            max_waiting: Requests that may wait beside those in the batch; one more raises ServerBusy.
            engine_options: More arguments of vLLM's engine, as `{"enforce_eager": True}`.

        Raises:
            ConfigError: The folder, the device or an argument will not do.
        """
        if not isinstance(model_path, str | Path):
            raise ConfigError(f"model_path is {model_path!r}: give a folder that gaudi3-train export wrote.")
        folder = Path(model_path)
        for name, value in (
            ("max_batch_size", max_batch_size),
            ("max_waiting", max_waiting),
            ("max_length", 1 if max_length is None else max_length),
        ):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{name} is {value!r}: give a whole number of at least 1.")
        if device not in DEVICES:
            raise ConfigError(f"device is {device!r}: give {', '.join(DEVICES[:-1])} or {DEVICES[-1]}.")
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder: give one that gaudi3-train export wrote.")
        self.engine: str = _engine(engine)
        self._engine: Engine
        if self.engine == "vllm":
            from gaudi3_scale.serving.vllm_engine import VllmEngine

            self._engine = VllmEngine(folder, max_batch_size, max_waiting, dtype, max_length, engine_options)
        else:
            if engine_options:
                raise ConfigError("engine_options are vLLM's, which does not run here: remove them.")
            from gaudi3_scale.serving.batcher import Batcher
            from gaudi3_scale.serving.loaded_model import load

            self._engine = Batcher(load(folder, device, dtype, max_length), max_batch_size, max_waiting)

    def generate(
        self, prompts: Sequence[Prompt | Request], max_new_tokens: int | None = None, **options: Any
    ) -> list[str]:
        """The answers' texts, in the order of the prompts; `complete` has more of each.

        ``options``: the other fields of `Request`, for every prompt that is not a `Request` of its own.
        """
        return [answer.text for answer in self.complete(prompts, max_new_tokens, **options)]

    def complete(
        self,
        prompts: Sequence[Prompt | Request],
        max_new_tokens: int | None = None,
        *,
        keep_errors: bool = False,
        **options: Any,
    ) -> list[Completion]:
        """The answers with their tokens and why each ended.

        More prompts than may wait are handed over as others end. The first error of a request is raised and the others
        are cancelled; with ``keep_errors`` the others are answered, and it is in its own `Completion`.
        """
        tickets: list[Ticket] = []
        try:
            for made in _requests(prompts, max_new_tokens, options):
                while not self._try(made, tickets, keep_errors):
                    wait([ticket.answer for ticket in tickets if not ticket.answer.done()], return_when=FIRST_COMPLETED)
            return [_result(ticket.answer, keep_errors) for ticket in tickets]
        except BaseException:
            _cancel(tickets)
            raise

    async def complete_async(
        self,
        prompts: Sequence[Prompt | Request],
        max_new_tokens: int | None = None,
        *,
        keep_errors: bool = False,
        **options: Any,
    ) -> list[Completion]:
        """As `complete`, without blocking the event loop; a task that is cancelled takes its requests with it."""
        tickets: list[Ticket] = []
        try:
            for made in _requests(prompts, max_new_tokens, options):
                while not self._try(made, tickets, keep_errors):
                    await _one_of([ticket.answer for ticket in tickets if not ticket.answer.done()])
            for ticket in tickets:
                await _one_of([ticket.answer])
            return [_result(ticket.answer, keep_errors) for ticket in tickets]
        except BaseException:
            _cancel(tickets)
            raise

    async def generate_async(
        self, prompts: Sequence[Prompt | Request], max_new_tokens: int | None = None, **options: Any
    ) -> list[str]:
        """As `generate`, without blocking the event loop."""
        return [answer.text for answer in await self.complete_async(prompts, max_new_tokens, **options)]

    async def stream(
        self, prompt: Prompt | Request, max_new_tokens: int | None = None, **options: Any
    ) -> AsyncIterator[AnswerPiece]:
        """The answer piece by piece; who stops reading (`aclose`, or a cancelled task) cancels the request."""
        (request,) = _requests([prompt], max_new_tokens, options)
        if isinstance(request, ConfigError):
            raise request
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[AnswerPiece | None] = asyncio.Queue()

        def pass_on(piece: AnswerPiece | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        ticket = self._engine.submit(request, pass_on)
        ticket.answer.add_done_callback(lambda _: pass_on(_LAST))
        try:
            while (piece := await pieces.get()) is not _LAST:
                yield piece
            _result(ticket.answer, keep=False)
        finally:
            ticket.answer.cancel()

    def close(self) -> None:
        """End the engine; requests that are not complete end with ServerClosed. A second call does nothing."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _try(self, request: Request | ConfigError, tickets: list[Ticket], keep: bool) -> bool:
        """Hand a request over; False where it has to wait for one of the caller's own."""
        try:
            if isinstance(request, ConfigError):
                raise request
            tickets.append(self._engine.submit(request))
        except ServerBusy:
            if all(ticket.answer.done() for ticket in tickets):
                raise
            return False
        except ConfigError as error:
            if not keep:
                raise
            tickets.append(Ticket(Request("x"), ()))
            tickets[-1].fail(error)
        return True


def _engine(wanted: str) -> str:
    if wanted not in ("auto", "vllm", "transformers"):
        raise ConfigError(f"engine is {wanted!r}: give auto, vllm or transformers.")
    there = importlib.util.find_spec("vllm") is not None
    if wanted == "vllm" and not there:
        raise ConfigError("engine is 'vllm', which is not installed: install vLLM, or give transformers.")
    return wanted if wanted != "auto" else "vllm" if there else "transformers"


def _requests(
    given: Iterable[Prompt | Request], max_new_tokens: int | None, options: dict[str, Any]
) -> list[Request | ConfigError]:
    """A request for each prompt, or what is wrong with it."""
    try:
        prompts = [given] if isinstance(given, str | Request) else list(given)
        alone = isinstance(given, str | Request) or (prompts and all(isinstance(each, int) for each in prompts))
    except TypeError:
        raise ConfigError(f"prompts is {given!r}: give a list of texts, or of lists of token ids.") from None
    if alone:
        raise ConfigError("A list of prompts is needed: put the prompt into a list.")
    if max_new_tokens is not None:
        options = {**options, "max_new_tokens": max_new_tokens}
    try:
        common = Request("x", **options)
    except TypeError:
        fields = ", ".join(name for name in Request.__dataclass_fields__ if name != "prompt")
        raise ConfigError(f"One of {', '.join(options)} is no option of a request: it has {fields}.") from None
    made: list[Request | ConfigError] = []
    for each in prompts:
        try:
            made.append(each if isinstance(each, Request) else replace(common, prompt=each))
        except ConfigError as error:
            made.append(error)
    return made


async def _one_of(answers: Sequence[Future[Completion]]) -> None:
    """Wait for the first of them, and cancel none."""
    if not answers:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def end(_: Future[Completion]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(ended.set)

    for answer in answers:
        answer.add_done_callback(end)
    await ended.wait()


def _result(answer: Future[Completion], keep: bool) -> Completion:
    try:
        return answer.result()
    except CancelledError:
        raise TrainerError("The request was cancelled.") from None
    except Exception as error:
        if not keep:
            raise
        return Completion("", (), 0, "error", error)


def _cancel(tickets: Sequence[Ticket]) -> None:
    for ticket in tickets:
        ticket.answer.cancel()
