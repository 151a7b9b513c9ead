"""A stand-in for `vllm serve`, in the words and with the traps that were measured with 0.32.0.

    python tests/serving/stand_in_vllm.py serve FOLDER --port 18801 --served-model-name job --shutdown-timeout 60

`tests/serving/contract.py` asks it and the real one the same questions; `make proof-serving` holds the two together.
Nothing listens until it is warm (`STAND_IN_WARM` seconds), and SIGTERM is lost until then. A token takes
`STAND_IN_TOKEN` seconds, and the first of an answer `STAND_IN_FIRST` more. Its Worker is a process, whose death ends
the server with exit code 0 after `STAND_IN_DEATH` seconds (the real one took five to six).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
NAMES = {
    "vllm:num_requests_running": "gauge",
    "vllm:num_requests_waiting": "gauge",
    "vllm:num_requests_waiting_by_reason": "gauge",
    "vllm:kv_cache_usage_perc": "gauge",
    "vllm:num_preemptions_total": "counter",
    "vllm:request_success_total": "counter",
    "vllm:generation_tokens_total": "counter",
    "vllm:prompt_tokens_total": "counter",
    "vllm:admission_rejections_total": "counter",
    "vllm:cache_config_info": "gauge",
    "http_requests_total": "counter",
}
HISTOGRAMS = (
    "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds",
)


def seconds(name: str, usual: float) -> float:
    """A time that the test gave."""
    return float(os.environ.get(f"STAND_IN_{name}", usual))


def token(place: int) -> int:
    """What a greedy model of no weights says at a place."""
    return 97 + place % 26


class Server:
    """One server, its Worker and its requests."""

    def __init__(self, options: argparse.Namespace) -> None:
        config = json.loads((Path(options.model) / "config.json").read_text(encoding="utf-8"))
        self.name = options.served_model_name or options.model
        self.length = options.max_model_len or config["max_position_embeddings"]
        self.drain = options.shutdown_timeout
        self.running: set[asyncio.Task[None]] = set()
        self.counts = {"stop": 0, "length": 0, "abort": 0, "error": 0, "tokens": 0, "prompt": 0}
        self.aborted = self.draining = self.dead = False
        self.ended = asyncio.Event()
        self.worker = subprocess.Popen(["sleep", "infinity"])

    # How it ends

    def told(self) -> None:
        """SIGTERM of a server that is ready."""
        if self.draining:
            return
        self.draining = True
        self.aborted = not self.drain
        asyncio.get_running_loop().create_task(self._leave())

    async def _leave(self) -> None:
        limit = time.monotonic() + (self.drain or 2)
        while self.running and time.monotonic() < limit:
            await asyncio.sleep(0.02)
        self.aborted = True
        await asyncio.sleep(0.1)
        self.ended.set()

    async def watch(self) -> None:
        """See whether the Worker is alive."""
        while self.worker.poll() is None:
            await asyncio.sleep(0.05)
        self.dead = True
        await asyncio.sleep(seconds("DEATH", 5.5))
        self.ended.set()

    # What it answers

    async def app(self, scope: Message, receive: Any, send: Send) -> None:
        """The routes, as ASGI has them."""
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message["body"]
        path = scope["path"]
        if path == "/health":
            await answer(send, 503 if self.dead else 200, b"")
        elif path == "/metrics":
            await answer(send, 200, self.metrics().encode(), "text/plain; version=0.0.4")
        elif path == "/v1/models":
            card = {"id": self.name, "object": "model", "max_model_len": self.length}
            await answer(send, 200, json.dumps({"object": "list", "data": [card]}).encode())
        elif path == "/version":
            await answer(send, 200, b'{"version":"0.0.0+stand-in"}')
        elif path == "/v1/completions":
            await self.completions(json.loads(body), send)
        elif path == "/v1/chat/completions":
            await refuse(send, 400, "As of transformers v4.44, default chat template is no longer allowed, so you must")
        else:
            await answer(send, 404, b'{"detail":"Not Found"}')

    async def completions(self, asked: dict[str, Any], send: Send) -> None:
        """As far as the tests use them."""
        if asked["model"] != self.name:
            return await refuse(send, 404, f"The model `{asked['model']}` does not exist.")
        prompt = asked["prompt"]
        count = len(prompt) if isinstance(prompt, list) else len(str(prompt).encode())
        most = asked.get("max_tokens", 16)
        if count + most > self.length:
            return await refuse(
                send, 400, f"This model's maximum context length is {self.length} tokens. However, you requested {most}"
            )
        if self.draining or self.dead:
            return await refuse(send, 500, "cannot schedule new futures after shutdown")
        task = asyncio.current_task()
        assert task is not None
        self.running.add(task)
        try:
            await self._complete(asked, count, most, send)
        finally:
            self.running.discard(task)

    async def _complete(self, asked: dict[str, Any], count: int, most: int, send: Send) -> None:
        usage = {"prompt_tokens": count, "completion_tokens": 0, "total_tokens": count}
        streams = bool(asked.get("stream"))
        if streams:
            # vLLM sends these at once, long before its first token.
            await start(send, 200, "text/event-stream; charset=utf-8")
        made: list[int] = []
        reason = "length"
        async for one in self._tokens(most):
            if one is None:
                reason = "error" if self.dead else "abort"
                break
            made.append(one)
            if streams:
                await piece(send, self._choice(asked, [one], None))
        usage.update(completion_tokens=len(made), total_tokens=count + len(made))
        self.counts[reason] += 1
        self.counts["tokens"] += len(made)
        self.counts["prompt"] += count
        if not streams:
            await answer(send, 200, json.dumps({**self._choice(asked, made, reason), "usage": usage}).encode())
            return
        if reason == "error":
            await piece(send, {"error": {"message": "EngineCore encountered an issue.", "code": 500}})
        else:
            await piece(send, self._choice(asked, [], reason))
            if (asked.get("stream_options") or {}).get("include_usage"):
                await piece(send, {"object": "text_completion", "model": self.name, "choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _tokens(self, most: int) -> AsyncIterator[int | None]:
        """Tokens in their time; None where the engine gives no more."""
        await asyncio.sleep(seconds("FIRST", 0))
        for place in range(most):
            if self.dead or self.aborted:
                yield None
                return
            yield token(place)
            await asyncio.sleep(seconds("TOKEN", 0.001))

    def _choice(self, asked: dict[str, Any], made: list[int], reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "text": bytes(made).decode(), "finish_reason": reason}
        if asked.get("return_token_ids"):
            choice["token_ids"] = made
        return {"object": "text_completion", "model": self.name, "choices": [choice]}

    def metrics(self) -> str:
        """The names that alerts and dashboards use, and few values."""
        label = f'{{engine="0",model_name="{self.name}"}}'
        lines = []
        for name, kind in NAMES.items():
            lines.append(f"# TYPE {name.removesuffix('_total')} {kind}")
            if name == "vllm:request_success_total":
                lines += [
                    f'{name}{{engine="0",finished_reason="{reason}",model_name="{self.name}"}} {self.counts[reason]}.0'
                    for reason in ("stop", "length", "abort", "error")
                ]
                continue
            values = {
                "vllm:num_requests_running": len(self.running),
                "vllm:generation_tokens_total": self.counts["tokens"],
            }
            lines.append(f"{name}{label} {float(values.get(name, 0))}")
        for name in HISTOGRAMS:
            lines += [f"# TYPE {name} histogram", f"{name}_sum{label} 0.0", f"{name}_count{label} 0.0"]
            lines.append(f'{name}_bucket{{engine="0",le="+Inf",model_name="{self.name}"}} 0.0')
        return "\n".join(lines) + "\n"


async def start(send: Send, status: int, kind: str = "application/json", length: int | None = None) -> None:
    """The headers of an answer; without a length it comes in chunks."""
    headers = [(b"content-type", kind.encode())]
    headers += [(b"content-length", str(length).encode())] if length is not None else []
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def answer(send: Send, status: int, body: bytes, kind: str = "application/json") -> None:
    """A whole answer."""
    await start(send, status, kind, len(body))
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, status: int, message: str) -> None:
    """An error as vLLM has it."""
    await answer(send, status, json.dumps({"error": {"message": message, "code": status}}).encode())


async def piece(send: Send, value: dict[str, Any]) -> None:
    """A piece of a stream."""
    await send({"type": "http.response.body", "body": f"data: {json.dumps(value)}\n\n".encode(), "more_body": True})


async def connection(app: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection of HTTP/1.1, with its requests one after another."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, _version = first.split()
            headers = {name.lower(): value.strip() for name, _colon, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            chunked = False

            async def receive(body: bytes = body) -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: Message) -> None:
                nonlocal chunked
                if message["type"] == "http.response.start":
                    given = dict(message["headers"])
                    chunked = b"content-length" not in given
                    said = b"".join(name + b": " + value + b"\r\n" for name, value in given.items())
                    said += b"transfer-encoding: chunked\r\n" if chunked else b""
                    writer.write(f"HTTP/1.1 {message['status']} x\r\n".encode() + said + b"\r\n")
                else:
                    data = message.get("body", b"")
                    writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked and data else data)
                    if chunked and not message.get("more_body"):
                        writer.write(b"0\r\n\r\n")
                await writer.drain()

            await app({"type": "http", "method": method, "path": path.partition("?")[0]}, receive, send)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(options: argparse.Namespace) -> None:
    """Be cold, be warm, end."""
    server = Server(options)
    app: Any = server.app
    for name in options.middleware:
        module, _dot, attribute = name.rpartition(".")
        app = getattr(importlib.import_module(module), attribute)(app)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: None)
    await asyncio.sleep(seconds("WARM", 0.2))
    listening = await asyncio.start_server(
        lambda reader, writer: connection(app, reader, writer), options.host, options.port
    )
    print("INFO:     Application startup complete.", flush=True)
    loop.add_signal_handler(signal.SIGTERM, server.told)
    watching = loop.create_task(server.watch())
    await server.ended.wait()
    watching.cancel()
    server.worker.kill()
    listening.close()
    # The real one ends so, too: with what a dead Worker leaves behind.
    os._exit(0)


def main(arguments: list[str]) -> None:
    """The command line, as far as the role uses it."""
    parser = argparse.ArgumentParser(prog="vllm")
    commands = parser.add_subparsers(required=True).add_parser("serve")
    commands.add_argument("model")
    commands.add_argument("--host", default="127.0.0.1")
    commands.add_argument("--port", type=int, default=8000)
    for name in ("--served-model-name", "--dtype"):
        commands.add_argument(name, default="")
    for name in ("--max-model-len", "--max-num-seqs", "--shutdown-timeout"):
        commands.add_argument(name, type=int, default=0)
    commands.add_argument("--middleware", action="append", default=[])
    for name in ("--enforce-eager", "--disable-uvicorn-access-log"):
        commands.add_argument(name, action="store_true")
    if os.environ.get("STAND_IN_FAILS"):
        sys.exit("ValueError: the test wants it to fail")
    asyncio.run(serve(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
