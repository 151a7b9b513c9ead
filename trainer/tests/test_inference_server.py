"""`OptimizedInferenceServer` over the batcher and, with a stand-in of vLLM's own names, over vLLM."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import types
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import answering
import pytest
import torch

import gaudi3_scale
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.serving import Completion, OptimizedInferenceServer, Request, ServerBusy, ServerClosed

SECONDS = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("model")
    answering.model().save_pretrained(made)
    answering.tokenizer().save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[OptimizedInferenceServer]:
    with OptimizedInferenceServer(folder, max_batch_size=4, device="cpu", max_waiting=3) as made:
        assert made.engine == "transformers"
        yield made


def reference(folder: Path, prompt: str, tokens: int) -> str:
    tokenizer = answering.tokenizer()
    made: str = tokenizer.decode(answering.alone(answering.model(), tokenizer(prompt).input_ids, tokens))
    return made


def test_it_is_where_the_documents_say() -> None:
    assert gaudi3_scale.OptimizedInferenceServer is OptimizedInferenceServer
    assert {"OptimizedInferenceServer", "__version__"} <= {*gaudi3_scale.__all__}


def test_more_prompts_than_may_wait_keep_their_order(server: OptimizedInferenceServer, folder: Path) -> None:
    asked = [f"prompt {'x' * index}" for index in range(12)]
    found = server.generate(asked, max_new_tokens=5)
    assert found == [reference(folder, prompt, 5) for prompt in asked]


def test_prompts_of_a_generator_and_of_tensors(server: OptimizedInferenceServer, folder: Path) -> None:
    assert server.generate((each for each in ("abc", "ab")), 3) == server.generate(["abc", "ab"], 3)
    assert server.generate([torch.tensor([97, 98])], 3) == server.generate([[97, 98]], 3)


def test_limits_of_each_request_and_options_of_all(server: OptimizedInferenceServer, folder: Path) -> None:
    whole = reference(folder, "abc", 12)
    own = Request("abc", max_new_tokens=12, stop=(whole[4:6],))
    first, second, third = server.complete([own, "abc", [97, 98]], max_new_tokens=3)
    assert first.text == whole[: whole.index(whole[4:6])] and first.finish_reason == "stop"
    assert second.text == reference(folder, "abc", 3) and second.finish_reason == "length"
    assert len(third.token_ids) == 3 and third.prompt_tokens == 2


def test_an_error_ends_the_call_or_its_own_answer(server: OptimizedInferenceServer, folder: Path) -> None:
    asked: list[Any] = ["good", [300], "", "also good"]
    with pytest.raises(ConfigError, match="has token 300"):
        server.complete(asked, max_new_tokens=2)
    found = server.complete(asked, max_new_tokens=2, keep_errors=True)
    assert [answer.finish_reason for answer in found] == ["length", "error", "error", "length"]
    assert "has token 300" in str(found[1].error) and "prompt is empty" in str(found[2].error)
    assert found[3].text == reference(folder, "also good", 2)


def test_async_calls_share_the_batches(folder: Path) -> None:
    async def both(server: OptimizedInferenceServer) -> list[list[str]]:
        calls = (server.generate_async([f"{name}{index}" for index in range(6)], max_new_tokens=4) for name in "ab")
        return await asyncio.wait_for(asyncio.gather(*calls), SECONDS)

    with OptimizedInferenceServer(folder, device="cpu") as server:
        found = asyncio.run(both(server))
    assert found == [[reference(folder, f"{name}{index}", 4) for index in range(6)] for name in "ab"]


def test_an_async_call_of_more_than_may_wait(server: OptimizedInferenceServer, folder: Path) -> None:
    found = asyncio.run(asyncio.wait_for(server.generate_async([f"c{index}" for index in range(12)], 3), SECONDS))
    assert found == [reference(folder, f"c{index}", 3) for index in range(12)]


def test_a_stream_is_the_answer_in_pieces(server: OptimizedInferenceServer, folder: Path) -> None:
    async def read() -> list[Any]:
        return [piece async for piece in server.stream("stream me", max_new_tokens=9)]

    pieces = asyncio.run(asyncio.wait_for(read(), SECONDS))
    assert "".join(piece.text for piece in pieces) == reference(folder, "stream me", 9)
    assert [len(piece.token_ids) for piece in pieces] == [1] * 9


def test_who_stops_reading_cancels(server: OptimizedInferenceServer) -> None:
    async def leave() -> int:
        stream = server.stream([1, 2, 3], max_new_tokens=200)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        task = asyncio.create_task(server.complete_async([[1, 2, 3]], max_new_tokens=200))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return 0

    asyncio.run(asyncio.wait_for(leave(), SECONDS))
    batcher: Any = server._engine
    deadline = time.monotonic() + SECONDS
    while batcher._running is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_errors_of_a_stream_are_raised_to_its_reader(server: OptimizedInferenceServer) -> None:
    async def read(prompt: Any) -> None:
        async for _ in server.stream(prompt):
            pass

    for prompt, said in (("", "prompt is empty"), ([999], "has token 999")):
        with pytest.raises(ConfigError, match=said):
            asyncio.run(read(prompt))


def test_close_ends_who_waits(folder: Path) -> None:
    server = OptimizedInferenceServer(folder, device="cpu")
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            server.generate([[1, 2]] * 3, max_new_tokens=250)
        except TrainerError as error:
            ended.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.05)
    server.close()
    asking.join(SECONDS)
    assert [type(error) for error in ended] in ([ServerClosed], [])
    with pytest.raises(ServerClosed):
        server.generate(["late"])
    server.close()


@pytest.mark.parametrize(
    "given, said",
    [
        ({"max_batch_size": 0}, "max_batch_size is 0"),
        ({"max_waiting": 0}, "max_waiting is 0"),
        ({"engine": "tgi"}, "engine is 'tgi'"),
        ({"engine": "vllm"}, "is not installed"),
        ({"engine_options": {"a": 1}}, "engine_options are vLLM's"),
        ({"max_length": 9999}, "made for 256"),
        ({"max_length": 0}, "max_length is 0: give a whole number of at least 1"),
        ({"max_length": "64"}, "max_length is '64'"),
        ({"max_batch_size": "3"}, "max_batch_size is '3'"),
        ({"max_waiting": 1.5}, "max_waiting is 1.5"),
        ({"device": "hpu:1"}, "device is 'hpu:1': give auto, hpu, cuda or cpu"),
        ({"dtype": "int8"}, "as int8: LlamaForCausalLM cannot be instantiated"),
        ({"model_path": None}, "model_path is None: give a folder"),
    ],
)
def test_arguments_that_will_not_do(folder: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        OptimizedInferenceServer(**{"model_path": folder, "device": "cpu", **given})


def test_folders_that_will_not_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder"):
        OptimizedInferenceServer(tmp_path / "none")
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        OptimizedInferenceServer(tmp_path)
    answering.model().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigError, match=r"transformers cannot load .*: export the model again"):
        OptimizedInferenceServer(tmp_path, device="cpu")
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"transformers cannot load .*: export the model again"):
        OptimizedInferenceServer(tmp_path, device="cpu")


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda server: server.generate("one prompt"), "put the prompt into a list"),
        (lambda server: server.generate([1, 2, 3]), "put the prompt into a list"),
        (lambda server: server.generate(["a"], max_tokens=3), "One of max_tokens is no option of a request"),
        (lambda server: server.generate(["a"], max_new_tokens=0), "Max_new_tokens is 0"),
        (lambda server: server.generate(["a"], top_p=0), "Top_p is 0"),
        (lambda server: server.generate(["a"], temperature=float("nan")), "Temperature must be 0 or more"),
        (lambda server: server.generate(["a"], stop=("",)), "text of stop is empty"),
        (lambda server: server.generate(["a"], stop=[3]), "stop is .3.: give texts"),
        (lambda server: server.generate(["a"], max_new_tokens="3"), "max_new_tokens is '3': give a whole number"),
        (lambda server: server.generate(["a"], temperature="1"), "temperature is '1': give a number"),
        (
            lambda server: server.generate(["a"], seed=2**70, temperature=1, max_new_tokens=2),
            "Seed is .*: give one of 64",
        ),
        (lambda server: server.generate([[1.5]]), "prompt is .1.5.: give a text or token ids"),
        (lambda server: server.generate(None), "prompts is None: give a list"),
    ],
)
def test_calls_that_will_not_do(server: OptimizedInferenceServer, call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call(server)


def test_a_model_without_text(tmp_path: Path) -> None:
    answering.model().save_pretrained(tmp_path)
    with OptimizedInferenceServer(tmp_path, device="cpu") as server:
        (answer,) = server.complete([[1, 2, 3]], max_new_tokens=4)
        assert answer == Completion("", tuple(answering.alone(answering.model(), [1, 2, 3], 4)), 3, "length")
        for wrong in (lambda: server.generate(["text"]), lambda: server.generate([[1]], stop=("x",))):
            with pytest.raises(ConfigError, match="has no tokenizer"):
                wrong()


class _Output(types.SimpleNamespace):
    pass


class StandIn:
    """vLLM's AsyncLLM as far as it is used: counts up from the last token of the prompt, and notes what is aborted."""

    def __init__(self, given: Any) -> None:
        self.given, self.aborted, self.closed = given, list[str](), False

    async def generate(self, prompt: Any, sampling: Any, name: str) -> AsyncIterator[Any]:
        tokens = prompt["prompt_token_ids"] if isinstance(prompt, dict) else [len(prompt)]
        if tokens == [13]:
            raise ValueError("vLLM refuses 13")
        try:
            for index in range(sampling.max_tokens):
                await asyncio.sleep(0.001)
                last = index + 1 == sampling.max_tokens
                part = _Output(text="t", token_ids=[tokens[-1] + index + 1], finish_reason="length" if last else None)
                yield _Output(outputs=[part], finished=last, prompt_token_ids=tokens)
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted.append(name)
            raise

    def shutdown(self) -> None:
        self.closed = True


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[StandIn]]:
    made: list[StandIn] = []

    def start(given: Any) -> StandIn:
        made.append(StandIn(given))
        return made[-1]

    names = {
        "vllm": {"SamplingParams": types.SimpleNamespace, "__spec__": object()},
        "vllm.engine": {},
        "vllm.engine.arg_utils": {"AsyncEngineArgs": lambda **given: given},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.async_llm": {"AsyncLLM": types.SimpleNamespace(from_engine_args=start)},
        "vllm.sampling_params": {"RequestOutputKind": types.SimpleNamespace(DELTA="delta")},
    }
    for name, holds in names.items():
        module = types.ModuleType(name)
        module.__dict__.update(holds)
        monkeypatch.setitem(sys.modules, name, module)
    yield made


def test_vllm_is_taken_where_it_is_installed(folder: Path, vllm: list[StandIn]) -> None:
    with OptimizedInferenceServer(folder, max_batch_size=2, engine_options={"enforce_eager": True}) as server:
        (engine,) = vllm
        assert server.engine == "vllm"
        assert engine.given == {
            "model": str(folder),
            "max_num_seqs": 2,
            "dtype": "auto",
            "max_model_len": None,
            "enforce_eager": True,
        }
        found = server.complete([[1], [13], [5]], max_new_tokens=3, keep_errors=True)
        assert [answer.token_ids for answer in found] == [(2, 3, 4), (), (6, 7, 8)]
        assert found[0] == Completion("ttt", (2, 3, 4), 1, "length") and "refuses 13" in str(found[1].error)

        async def leave() -> None:
            async for _ in server.stream("text", max_new_tokens=10_000):
                break

        asyncio.run(asyncio.wait_for(leave(), SECONDS))
        deadline = time.monotonic() + SECONDS
        while len(engine.aborted) < 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert engine.closed
    with pytest.raises(ServerClosed):
        server.generate(["late"])


def test_vllm_is_closed_with_requests_under_way(folder: Path, vllm: list[StandIn]) -> None:
    server = OptimizedInferenceServer(folder, max_batch_size=1, max_waiting=1)
    engine: Any = server._engine
    tickets = [engine.submit(Request([1], max_new_tokens=10_000)) for _ in range(2)]
    with pytest.raises(ServerBusy, match="2 requests are open already"):
        engine.submit(Request([1]))
    server.close()
    for ticket in tickets:
        with pytest.raises(ServerClosed):
            ticket.answer.result(SECONDS)


def test_vllm_that_does_not_start_says_so(folder: Path, vllm: list[StandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**given: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(sys.modules["vllm.engine.arg_utils"], "AsyncEngineArgs", fail)
    with pytest.raises(TrainerError, match=r"vLLM did not start with .*: no room"):
        OptimizedInferenceServer(folder)
