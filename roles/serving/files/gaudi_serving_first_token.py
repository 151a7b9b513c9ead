# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""ASGI middleware of vLLM (``--middleware``): an answer's headers wait for its first token.

vLLM sends the headers of a stream at once, and the first token seconds later. A balancer can ask another replica only
while nothing of an answer has come, so that a replica lost in between would cost the request. With this it can until
the first token; and an error that comes in the place of that token is told by its status, as without a stream.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: How vLLM begins an error within a stream.
_ERROR = b'data: {"error"'


class FirstToken:
    """Holds ``http.response.start`` until the first bytes of the body."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Entry point of a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held: list[Message] = []

        async def later(message: Message) -> None:
            if message["type"] == "http.response.start":
                held.append(message)
                return
            body = message.get("body", b"")
            if held and (body or not message.get("more_body", False)):
                start = held.pop()
                if start["status"] == 200 and body.startswith(_ERROR):
                    start["status"] = 503
                await send(start)
            if not held:
                await send(message)

        await self._app(scope, receive, later)
