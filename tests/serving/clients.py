"""Clients of a served model: one answer, many streams at once, and what became of each."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """What a client got. A stream is whole with a reason of its own, its usage and the last word."""

    status: int = 0
    tokens: list[int] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    reason: str = ""
    usage: int = 0
    done: bool = False
    error: str = ""
    seconds: float = 0.0
    body: Any = None

    @property
    def whole(self) -> bool:
        """Whether nothing was lost."""
        return self.status == 200 and self.done and self.reason in ("length", "stop") and not self.error

    @property
    def told(self) -> bool:
        """Whether a client can see that it is not."""
        return bool(self.error) or self.reason in ("abort", "error") or not self.done or self.status != 200


@dataclass(frozen=True)
class Client:
    """Where the model is served, and with which key."""

    host: str
    port: int
    model: str = "job"
    key: str = ""
    context: ssl.SSLContext | None = None
    timeout: float = 60.0

    def connect(self) -> http.client.HTTPConnection:
        """A connection of its own."""
        if self.context is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.context)

    def ask(self, path: str, body: Any = None, key: str | None = None) -> Answer:
        """One whole answer, its body as JSON where it is that."""
        found = Answer()
        connection = self.connect()
        headers = {"Content-Type": "application/json"}
        given = self.key if key is None else key
        headers |= {"Authorization": f"Bearer {given}"} if given else {}
        try:
            text = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, text, headers)
            answer = connection.getresponse()
            found.status, raw = answer.status, answer.read().decode()
            found.body = json.loads(raw) if raw[:1] in "{[" and raw else raw
        except (OSError, http.client.HTTPException, ValueError) as error:
            found.error = repr(error)
        finally:
            connection.close()
        return found

    def complete(self, prompt: Any, most: int, **more: Any) -> Answer:
        """A greedy answer with its tokens, not streamed."""
        asked = {"model": self.model, "prompt": prompt, "max_tokens": most, "temperature": 0, "return_token_ids": True}
        found = self.ask("/v1/completions", {**asked, **more})
        if found.status == 200 and isinstance(found.body, dict):
            choice = found.body["choices"][0]
            found.tokens, found.prompt_tokens = choice.get("token_ids") or [], choice.get("prompt_token_ids") or []
            found.reason, found.usage, found.done = (
                choice["finish_reason"],
                found.body["usage"]["completion_tokens"],
                True,
            )
        return found

    def stream(self, prompt: Any, most: int, **more: Any) -> Answer:
        """A streamed answer, up to its last word or to where it broke."""
        began, found, connection = time.monotonic(), Answer(), self.connect()
        asked = {"model": self.model, "prompt": prompt, "max_tokens": most, "temperature": 0, "stream": True}
        asked |= {"return_token_ids": True, "stream_options": {"include_usage": True}, **more}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        try:
            connection.request("POST", "/v1/completions", json.dumps(asked), headers)
            answer = connection.getresponse()
            found.status = answer.status
            for line in answer:
                self._take(found, line.decode().strip())
        except (OSError, http.client.HTTPException) as error:
            found.error = repr(error)
        finally:
            connection.close()
        found.seconds = time.monotonic() - began
        return found

    def _take(self, found: Answer, line: str) -> None:
        if line == "data: [DONE]":
            found.done = True
        elif line.startswith("data: "):
            value = json.loads(line[6:])
            if "error" in value:
                found.error = str(value["error"])
            for choice in value.get("choices") or ():
                found.tokens += choice.get("token_ids") or []
                found.reason = choice["finish_reason"] or found.reason
            found.usage = (value.get("usage") or {}).get("completion_tokens", found.usage)

    def streams(self, pool: ThreadPoolExecutor, count: int, most: int, **more: Any) -> list[Future[Answer]]:
        """Many at once."""
        return [pool.submit(self.stream, f"prompt {number}", most, **more) for number in range(count)]
