"""A dynamic batcher over transformers: requests join and leave a batch between two tokens.

One thread computes. Before each step the requests that wait are admitted: their prompts are padded on the left to one
length and computed together, and their keys and values are put beside those of the running ones, padded on the left,
too. Padding is masked and positions count from each prompt's own start, so a request gets the tokens that it would get
alone, but for rounding: where two logits are equal to the last bits, a batch may take the other.

Of models whose layers all keep keys and values of every position. On cards it compiles for every length that comes up:
serve with vLLM there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import ConfigError
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
from gaudi3_scale.serving.text_writer import TextWriter

if TYPE_CHECKING:
    import torch

    from gaudi3_scale.serving.loaded_model import LoadedModel


class _Row:
    """A request in the batch."""

    def __init__(self, ticket: Ticket, tokenizer: Any) -> None:
        import torch

        self.ticket, self.writer = ticket, TextWriter(tokenizer, ticket.request.stop)
        self.made: list[int] = []
        self.random: torch.Generator | None = None
        if ticket.request.temperature:
            self.random = torch.Generator()
            if ticket.request.seed is None:
                self.random.seed()
            else:
                self.random.manual_seed(ticket.request.seed)


class _Batch:
    """Rows, their cache, and which of its positions are theirs: `mask` is (rows, positions), 1 for a real one."""

    def __init__(self, rows: list[_Row], cache: Any, mask: torch.Tensor) -> None:
        self.rows, self.cache, self.mask = rows, cache, mask

    def keep(self, kept: Sequence[int]) -> _Batch:
        """Some rows, without positions that none of them has."""
        import torch
        from transformers import DynamicCache

        at = torch.tensor(list(kept), device=self.mask.device)
        mask = self.mask[at]
        first = int(mask.argmax(dim=1).min())
        cache = DynamicCache()
        for index, layer in enumerate(self.cache.layers):
            cache.update(layer.keys[at, :, first:], layer.values[at, :, first:], index)
        return _Batch([self.rows[index] for index in kept], cache, mask[:, first:].contiguous())


def _merged(batches: Sequence[_Batch]) -> _Batch:
    """All rows in one batch, padded on the left to the longest."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    if len(batches) == 1:
        return batches[0]
    length = max(batch.mask.shape[1] for batch in batches)
    short = [length - batch.mask.shape[1] for batch in batches]
    mask = torch.cat([pad(batch.mask, (less, 0)) for batch, less in zip(batches, short, strict=True)])
    cache = DynamicCache()
    for index in range(len(batches[0].cache.layers)):
        layers = [batch.cache.layers[index] for batch in batches]
        keys, values = (
            torch.cat([pad(each, (0, 0, less, 0)) for each, less in zip(parts, short, strict=True)])
            for parts in ([layer.keys for layer in layers], [layer.values for layer in layers])
        )
        cache.update(keys, values, index)
    return _Batch([row for batch in batches for row in batch.rows], cache, mask)


class Batcher:
    """An engine over a model of transformers; see the module."""

    def __init__(self, loaded: LoadedModel, max_batch_size: int, max_waiting: int) -> None:
        self._loaded, self._most, self._room = loaded, max_batch_size, max_waiting
        self._waiting: deque[Ticket] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._running: _Batch | None = None
        self._thread = threading.Thread(target=self._serve, name="serving", daemon=True)
        self._thread.start()

    def submit(self, request: Request, listener: Listener | None = None) -> Ticket:
        """Queue a request; it joins the batch before the next token. Raises as `Engine.submit`."""
        ticket = Ticket(request, self._loaded.tokens_of(request), listener)
        with self._changed:
            if self._closed:
                raise ServerClosed("The server is closed: make a new one.")
            if len(self._waiting) >= self._room:
                # Who was cancelled while waiting leaves at once, and makes room.
                self._waiting = deque(each for each in self._waiting if not each.answer.cancelled())
            if len(self._waiting) >= self._room:
                raise ServerBusy(f"{self._room} requests wait already: send this one later, or raise max_waiting.")
            self._waiting.append(ticket)
            self._changed.notify()
        return ticket

    def close(self) -> None:
        """End the thread after the step under way; every request that is not complete ends with ServerClosed."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _serve(self) -> None:
        import torch

        try:
            with torch.inference_mode():
                while (admitted := self._admit()) is not None:
                    self._step(admitted)
        except BaseException as error:
            self._end(error)
            raise
        self._end(ServerClosed("The server was closed before the answer was complete."))

    def _admit(self) -> list[Ticket] | None:
        """Who joins now; waits while there is nothing to do. None once the server is closed."""
        with self._changed:
            while not (self._closed or self._waiting or self._running):
                self._changed.wait()
            if self._closed:
                return None
            admitted: list[Ticket] = []
            free = self._most - (len(self._running.rows) if self._running else 0)
            while self._waiting and len(admitted) < free:
                ticket = self._waiting.popleft()
                # From here on a request that was cancelled before never started.
                if not ticket.answer.cancelled():
                    admitted.append(ticket)
            return admitted

    def _end(self, error: BaseException) -> None:
        with self._changed:
            self._closed = True
            left = [*self._waiting, *(row.ticket for row in (self._running.rows if self._running else ()))]
            self._waiting.clear()
            self._running = None
        for ticket in left:
            ticket.fail(error)

    def _step(self, admitted: list[Ticket]) -> None:
        """One token more for each running request, and the first one of each that joins."""
        parts = []
        if self._running and (running := self._without_cancelled(self._running)):
            parts += self._computed(running)
        self._running = None if not parts else _merged(parts)
        if admitted:
            parts = [self._running] if self._running else []
            # Known as running while its prompt is computed, so that it ends with the server, whatever happens.
            try:
                parts += self._prefilled([_Row(ticket, self._loaded.tokenizer) for ticket in admitted])
            except BaseException as error:
                for ticket in admitted:
                    ticket.fail(error)
                raise
            self._running = _merged(parts) if parts else None

    def _without_cancelled(self, batch: _Batch) -> _Batch | None:
        kept = [index for index, row in enumerate(batch.rows) if not row.ticket.answer.cancelled()]
        if not kept:
            return None
        return batch if len(kept) == len(batch.rows) else batch.keep(kept)

    def _prefilled(self, rows: list[_Row]) -> list[_Batch]:
        """The batches of these prompts after their first token; a prompt that cannot be computed fails alone."""
        import torch
        from transformers import DynamicCache

        length = max(len(row.ticket.tokens) for row in rows)
        tokens = torch.zeros((len(rows), length), dtype=torch.long)
        mask = torch.zeros((len(rows), length), dtype=torch.long)
        for index, row in enumerate(rows):
            tokens[index, length - len(row.ticket.tokens) :] = torch.tensor(row.ticket.tokens)
            mask[index, length - len(row.ticket.tokens) :] = 1
        batch = _Batch(rows, DynamicCache(), mask.to(self._loaded.device))
        try:
            logits = self._loaded.logits(tokens, batch.mask, batch.cache)
        except Exception as error:
            if len(rows) == 1:
                rows[0].ticket.fail(error)
                return []
            half = len(rows) // 2
            return self._prefilled(rows[:half]) + self._prefilled(rows[half:])
        return self._taken(batch, logits)

    def _computed(self, batch: _Batch) -> list[_Batch]:
        """The batch one token further, in parts where it had to be computed in parts: a row that fails, fails alone."""
        import torch
        from torch.nn.functional import pad

        tokens = torch.tensor([row.made[-1:] for row in batch.rows])
        length = batch.mask.shape[1]
        try:
            logits = self._loaded.logits(tokens, mask := pad(batch.mask, (0, 1), value=1), batch.cache)
        except Exception as error:
            if len(batch.rows) == 1:
                batch.rows[0].ticket.fail(error)
                return []
            for layer in batch.cache.layers:  # some of them may have this token already
                layer.keys, layer.values = layer.keys[..., :length, :], layer.values[..., :length, :]
            half = len(batch.rows) // 2
            halves = (range(half), range(half, len(batch.rows)))
            return [part for kept in halves for part in self._computed(batch.keep(kept))]
        batch.mask = mask
        return self._taken(batch, logits)

    def _taken(self, batch: _Batch, logits: torch.Tensor) -> list[_Batch]:
        """Give each row its token; the rows that go on."""
        best = logits.argmax(dim=-1).tolist()
        kept = []
        for index, row in enumerate(batch.rows):
            try:
                token = best[index] if row.random is None else _draw(logits[index], row)
                if self._goes_on(row, token):
                    kept.append(index)
            except Exception as error:  # of this row's draw, text or listener
                row.ticket.fail(error)
        if not kept:
            return []
        return [batch if len(kept) == len(batch.rows) else batch.keep(kept)]

    def _goes_on(self, row: _Row, token: int) -> bool:
        """Take a token; False where the row has ended with it."""
        ticket = row.ticket
        if ticket.answer.cancelled():
            return False
        row.made.append(token)
        text = row.writer.push(token)
        ended = row.writer.stopped or token in self._loaded.end_tokens
        full = len(row.made) >= ticket.request.max_new_tokens
        if ended or full:
            text += row.writer.end()
        if ticket.listener is not None:
            ticket.listener(AnswerPiece(text, (token,)))
        if ended or full:
            reason: FinishReason = "stop" if ended else "length"
            ticket.finish(Completion(row.writer.text, tuple(row.made), len(ticket.tokens), reason))
        return not (ended or full)


def _draw(logits: torch.Tensor, row: _Row) -> int:
    """One token by the row's temperature and top_p, by a generator of its own on the host."""
    import torch

    request = row.ticket.request
    shares, order = torch.sort((logits.float().cpu() / request.temperature).softmax(dim=-1), descending=True)
    if not torch.isfinite(shares).all():
        raise ConfigError("The model's logits are not finite: its weights or its type do not suit.")
    # The first is always kept, the others as long as those before them have less than top_p together.
    shares = shares.where(shares.cumsum(dim=-1) - shares < request.top_p, torch.zeros(()))
    return int(order[torch.multinomial(shares, 1, generator=row.random)])
