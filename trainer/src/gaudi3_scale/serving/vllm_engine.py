"""The same requests over vLLM, in this process: paged cache, continuous batches, on cards by its Gaudi plugin."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.serving.request import (
    AnswerPiece,
    Completion,
    FinishReason,
    Listener,
    Request,
    ServerBusy,
    ServerClosed,
    Ticket,
)

T = TypeVar("T")


class VllmEngine:
    """An engine over vLLM's own, whose event loop runs in a thread of its own."""

    def __init__(
        self, folder: Path, max_batch_size: int, max_waiting: int, dtype: str, max_length: int | None, options: Any
    ) -> None:
        self._most, self._tokenizer = max_batch_size + max_waiting, (folder / "tokenizer.json").is_file()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="serving", daemon=True)
        self._thread.start()
        self._open: set[Ticket] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._names = count()
        given = {"model": str(folder), "max_num_seqs": max_batch_size, "dtype": dtype, "max_model_len": max_length}
        if not self._tokenizer:
            given["skip_tokenizer_init"] = True
        try:
            self._vllm = self._run(self._started({**given, **(options or {})}))
        except Exception as error:
            self._stop_loop()
            raise TrainerError(f"vLLM did not start with {folder}: {error}") from error

    async def _started(self, given: dict[str, Any]) -> Any:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        return AsyncLLM.from_engine_args(AsyncEngineArgs(**given))

    def submit(self, request: Request, listener: Listener | None = None) -> Ticket:
        """Hand a request to vLLM. Raises as `Engine.submit`; what vLLM refuses ends the answer with its error."""
        if isinstance(request.prompt, str) and not self._tokenizer:
            raise ConfigError("The folder has no tokenizer: give token ids, or export the model with its tokenizer.")
        given = () if isinstance(request.prompt, str) else tuple(request.prompt)
        ticket = Ticket(request, given, listener)
        with self._lock:
            if self._closed:
                raise ServerClosed("The server is closed: make a new one.")
            if len(self._open) >= self._most:
                raise ServerBusy(f"{self._most} requests are open already: send this one later, or raise max_waiting.")
            self._open.add(ticket)
            self._loop.call_soon_threadsafe(self._begin, ticket)
        return ticket

    def close(self) -> None:
        """End vLLM; every request that is not complete ends with ServerClosed."""
        with self._lock:
            if self._closed:
                return
            self._closed, left = True, [*self._open]
        for ticket in left:
            ticket.fail(ServerClosed("The server was closed before the answer was complete."))
        self._run(self._drained())
        self._vllm.shutdown()
        self._stop_loop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _drained(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, ticket: Ticket) -> None:
        task = self._loop.create_task(self._answer(ticket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def cancel(_: Future[Completion]) -> None:
            if not task.done():
                self._loop.call_soon_threadsafe(task.cancel)

        # An answer that is cancelled ends vLLM's generator, which aborts the request.
        ticket.answer.add_done_callback(cancel)

    async def _answer(self, ticket: Ticket) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        asked = ticket.request
        prompt = asked.prompt if isinstance(asked.prompt, str) else {"prompt_token_ids": list(asked.prompt)}
        sampling = SamplingParams(
            max_tokens=asked.max_new_tokens,
            temperature=asked.temperature,
            top_p=asked.top_p,
            stop=list(asked.stop),
            seed=asked.seed,
            detokenize=self._tokenizer,
            output_kind=RequestOutputKind.DELTA,
        )
        text, tokens = "", list[int]()
        try:
            async for output in self._vllm.generate(prompt, sampling, f"request-{next(self._names)}"):
                (part,) = output.outputs
                text, tokens = text + part.text, [*tokens, *part.token_ids]
                if ticket.listener is not None:
                    ticket.listener(AnswerPiece(part.text, tuple(part.token_ids)))
                if output.finished:
                    prompt_tokens = len(output.prompt_token_ids or ticket.tokens)
                    reason: FinishReason = "length" if part.finish_reason == "length" else "stop"
                    ticket.finish(Completion(text, tuple(tokens), prompt_tokens, reason))
                    return
        except Exception as error:
            ticket.fail(error)
        finally:
            with self._lock:
                self._open.discard(ticket)
            if not ticket.answer.done():
                ticket.answer.cancel()
