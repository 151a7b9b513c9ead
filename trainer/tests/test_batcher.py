"""The dynamic batcher: the tokens of each prompt alone, whoever else is in its batch, comes, leaves or fails."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import answering
import pytest
import torch

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.serving import AnswerPiece, Completion, Request, ServerBusy, ServerClosed
from gaudi3_scale.serving.batcher import Batcher
from gaudi3_scale.serving.loaded_model import LoadedModel

Submit = Callable[..., Any]
SECONDS = 60.0


class Steps:
    """Holds the passes over a model, and notes how many rows and new positions each has."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.fails: Callable[[torch.Tensor], bool] = lambda tokens: False
        self._allowed, self._each = threading.Semaphore(0), loaded.logits
        self.free = True
        loaded.logits = self._logits  # type: ignore[method-assign]

    def let(self, count: int) -> None:
        """Let this many passes through, and wait for them."""
        wanted = len(self.shapes) + count
        for _ in range(count):
            self._allowed.release()
        deadline = time.monotonic() + SECONDS
        while len(self.shapes) < wanted:
            assert time.monotonic() < deadline, self.shapes
            time.sleep(0.001)

    def let_all(self) -> None:
        self.free = True
        self._allowed.release()

    def _logits(self, tokens: torch.Tensor, mask: torch.Tensor, cache: Any) -> torch.Tensor:
        if not self.free:
            self._allowed.acquire()
        try:
            found = self._each(tokens, mask, cache)  # first, as a pass that fails half way leaves a longer cache
            if self.fails(tokens):
                raise RuntimeError("a poisoned token")
            return found
        finally:
            self.shapes.append((tokens.shape[0], tokens.shape[1]))


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return answering.loaded()


@pytest.fixture
def steps(model: LoadedModel) -> Iterator[Steps]:
    each = model.logits
    yield Steps(model)
    model.logits = each  # type: ignore[method-assign]


@pytest.fixture
def batcher(model: LoadedModel, steps: Steps) -> Iterator[Batcher]:
    made = Batcher(model, 8, 4)
    yield made
    steps.let_all()
    made.close()


def reference(model: LoadedModel, prompt: list[int], tokens: int) -> tuple[int, ...]:
    return tuple(answering.alone(model._model, prompt, tokens))


def answers(tickets: list[Any]) -> list[Completion]:
    return [ticket.answer.result(SECONDS) for ticket in tickets]


@pytest.mark.parametrize("kind", answering.CONFIGS)
def test_each_answer_is_the_one_that_its_prompt_gets_alone(kind: str) -> None:
    loaded = answering.loaded(kind)
    asked = [(prompt, 3 + 5 * index % 17) for index, prompt in enumerate(answering.prompts(7))]
    batcher = Batcher(loaded, 4, 100)
    found = answers([batcher.submit(Request(prompt, max_new_tokens=tokens)) for prompt, tokens in asked])
    batcher.close()
    for (prompt, tokens), answer in zip(asked, found, strict=True):
        assert answer.token_ids == reference(loaded, prompt, tokens)
        assert (answer.prompt_tokens, answer.finish_reason) == (len(prompt), "length")
        assert answer.text == loaded.tokenizer.decode(answer.token_ids)


def test_the_end_token_ends_its_own_row_alone() -> None:
    plain = answering.loaded()
    asked = answering.prompts(6)
    whole = [reference(plain, prompt, 20) for prompt in asked]
    end = whole[0][7]
    loaded = answering.loaded(end=end)
    batcher = Batcher(loaded, 6, 10)
    found = answers([batcher.submit(Request(prompt, max_new_tokens=20)) for prompt in asked])
    batcher.close()
    for answer, tokens in zip(found, whole, strict=True):
        until = tokens.index(end) + 1 if end in tokens else len(tokens)
        assert answer.token_ids == tokens[:until]
        assert answer.finish_reason == ("stop" if end in tokens else "length")


def test_a_late_request_joins_between_two_tokens(model: LoadedModel, steps: Steps, batcher: Batcher) -> None:
    first, second = answering.prompts(2, seed=2)
    steps.free = False
    early = batcher.submit(Request(first, max_new_tokens=9))
    steps.let(3)
    late = batcher.submit(Request(second, max_new_tokens=3))
    steps.let(1)
    steps.let_all()
    assert [each.token_ids for each in answers([early, late])] == [
        reference(model, first, 9),
        reference(model, second, 3),
    ]
    assert steps.shapes[:3] == [(1, len(first)), (1, 1), (1, 1)]
    # Its prompt is computed while the other goes on, they share two passes, and the first one ends alone.
    assert (1, len(second)) in steps.shapes and steps.shapes.count((2, 1)) == 2
    assert steps.shapes[-1] == (1, 1)


def test_a_cancelled_request_leaves_its_batch(model: LoadedModel, steps: Steps, batcher: Batcher) -> None:
    first, second = answering.prompts(2, seed=3)
    steps.free = False
    leaves = batcher.submit(Request(first, max_new_tokens=200))
    stays = batcher.submit(Request(second, max_new_tokens=8))
    steps.let(4)
    assert leaves.answer.cancel()
    steps.let(1)
    before = len(steps.shapes)
    steps.let_all()
    assert answers([stays])[0].token_ids == reference(model, second, 8)
    assert all(rows == 1 for rows, _ in steps.shapes[before:])
    with pytest.raises(CancelledError):
        leaves.answer.result(0)


def test_a_prompt_that_cannot_be_computed_fails_alone(model: LoadedModel, steps: Steps, batcher: Batcher) -> None:
    asked = answering.prompts(5, seed=4, longest=12)
    poison = next(token for token in range(answering.VOCABULARY) if not any(token in prompt for prompt in asked))
    asked[2] = [*asked[2], poison]
    steps.fails = lambda tokens: tokens.shape[1] > 1 and poison in tokens
    tickets = [batcher.submit(Request(prompt, max_new_tokens=4)) for prompt in asked[:4]]
    with pytest.raises(RuntimeError, match="a poisoned token"):
        tickets[2].answer.result(SECONDS)
    for index in (0, 1, 3):
        assert tickets[index].answer.result(SECONDS).token_ids == reference(model, asked[index], 4)


def test_a_step_that_fails_for_one_row_fails_that_one_alone(model: LoadedModel, steps: Steps, batcher: Batcher) -> None:
    asked = answering.prompts(4, seed=5)
    whole = [reference(model, prompt, 10) for prompt in asked]
    poison = next(token for token in whole[1][2:6] if not any(token in whole[other] for other in (0, 2, 3)))
    steps.fails = lambda tokens: tokens.shape[1] == 1 and poison in tokens
    tickets = [batcher.submit(Request(prompt, max_new_tokens=10)) for prompt in asked]
    with pytest.raises(RuntimeError, match="a poisoned token"):
        tickets[1].answer.result(SECONDS)
    for index in (0, 2, 3):
        assert tickets[index].answer.result(SECONDS).token_ids == whole[index]


def test_a_listener_that_fails_ends_its_own_request(model: LoadedModel, batcher: Batcher) -> None:
    def fail(piece: AnswerPiece) -> None:
        raise ValueError("a reader's fault")

    first, second = answering.prompts(2, seed=6)
    bad = batcher.submit(Request(first, max_new_tokens=5), fail)
    good = batcher.submit(Request(second, max_new_tokens=5))
    with pytest.raises(ValueError, match="a reader's fault"):
        bad.answer.result(SECONDS)
    assert answers([good])[0].token_ids == reference(model, second, 5)


def test_the_queue_is_bounded_and_a_cancelled_request_makes_room(steps: Steps, batcher: Batcher) -> None:
    steps.free = False
    prompt = [1, 2, 3]
    batcher.submit(Request(prompt, max_new_tokens=2))
    deadline = time.monotonic() + SECONDS
    while batcher._waiting:  # until it is in the batch, whose first pass is held
        assert time.monotonic() < deadline
        time.sleep(0.001)
    waiting = [batcher.submit(Request(prompt, max_new_tokens=2)) for _ in range(4)]
    with pytest.raises(ServerBusy, match="4 requests wait already"):
        batcher.submit(Request(prompt))
    waiting[1].answer.cancel()
    more = batcher.submit(Request(prompt, max_new_tokens=2))
    steps.let_all()
    assert len(answers([waiting[0], more])) == 2


def test_close_ends_what_runs_and_what_waits(model: LoadedModel, steps: Steps) -> None:
    steps.free = False
    batcher = Batcher(model, 1, 4)
    runs, waits = (batcher.submit(Request([5, 6], max_new_tokens=200)) for _ in range(2))
    steps.let(3)
    closing = threading.Thread(target=batcher.close)
    closing.start()
    steps.let_all()
    closing.join(SECONDS)
    for ticket in (runs, waits):
        with pytest.raises(ServerClosed):
            ticket.answer.result(0)
    assert not batcher._thread.is_alive()
    batcher.close()
    with pytest.raises(ServerClosed, match="make a new one"):
        batcher.submit(Request([1]))


def test_draws_are_the_same_in_any_batch(model: LoadedModel, batcher: Batcher) -> None:
    def request(seed: int, prompt: list[int], top_p: float = 1.0) -> Request:
        return Request(prompt, max_new_tokens=12, temperature=1.5, top_p=top_p, seed=seed)

    prompt = answering.prompts(1, seed=7)[0]
    alone = answers([batcher.submit(request(1, prompt))])[0].token_ids
    among = [batcher.submit(request(seed, each)) for seed, each in ((1, prompt), (2, prompt), (1, [9, 9]))]
    first, second, _ = answers(among)
    assert first.token_ids == alone != second.token_ids
    narrow = answers([batcher.submit(request(1, prompt, top_p=1e-6))])[0].token_ids
    assert narrow == reference(model, prompt, 12)


def test_logits_that_are_no_numbers_end_the_request_that_draws(model: LoadedModel, batcher: Batcher) -> None:
    each = model.logits
    model.logits = lambda *given: each(*given) * float("nan")  # type: ignore[method-assign]
    ticket = batcher.submit(Request([1, 2], temperature=1.0))
    with pytest.raises(ConfigError, match="not finite"):
        ticket.answer.result(SECONDS)
    model.logits = each  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "request_, said",
    [
        (Request([answering.VOCABULARY]), "The prompt has token 256, and the model has tokens 0 to 255."),
        (Request([1] * 200, max_new_tokens=100), "above the length of 256"),
        (Request([-1]), "has token -1"),
    ],
)
def test_what_can_never_be_answered_is_refused_at_once(batcher: Batcher, request_: Request, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        batcher.submit(request_)


def test_requests_that_come_and_go_at_random(model: LoadedModel) -> None:
    """Every answer that was not cancelled is the one of its prompt alone; nobody waits for ever."""
    made = random.Random(11)
    batcher = Batcher(model, 5, 100)
    asked = [(prompt, made.randint(1, 25)) for prompt in answering.prompts(40, seed=8, longest=25)]
    tickets, cancelled = [], set()
    for index, (prompt, tokens) in enumerate(asked):
        tickets.append(batcher.submit(Request(prompt, max_new_tokens=tokens)))
        time.sleep(made.choice((0, 0, 0.004)))
        if made.random() < 0.3:
            at = made.randrange(index + 1)
            if tickets[at].answer.cancel():
                cancelled.add(at)
    for index, (prompt, tokens) in enumerate(asked):
        if index not in cancelled:
            assert tickets[index].answer.result(SECONDS).token_ids == reference(model, prompt, tokens)
    batcher.close()
    assert 0 < len(cancelled) < 40
