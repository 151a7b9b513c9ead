"""A headless Chromium over its pipe of commands: pages, what they say on the console, and pictures of them."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0
"""Seconds for which a test waits for what is there within one; a busy machine may take longer."""
MISSING = "The page is tried in Chromium, which is missing: apt-get install chromium"

#: The charts whose canvas has something in it.
DRAWN = """[...document.querySelectorAll('[data-chart]')].filter(chart => {
  const canvas = chart.querySelector('canvas');
  if (!canvas || !canvas.width) return false;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return pixels.some(pixel => pixel);
}).map(chart => chart.dataset.chart)"""


def program() -> str | None:
    """The browser of this machine."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser does not do what it was asked."""


class Browser:
    """A browser that was started; `tab` opens pages in it."""

    def __init__(self, process: subprocess.Popen[bytes], read: int, write: int) -> None:
        self.process, self._read, self._write = process, read, write
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **given: Any) -> dict[str, Any]:
        """A command, and its answer; events that come before that are kept."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": given} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                found: dict[str, Any] = message["result"]
                return found
            self.events.append(message)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise BrowserError("The browser does not answer.")
            piece = os.read(self._read, 2**20)
            if not piece:
                raise BrowserError("The browser has ended.")
            self._buffer += piece
        message, _end, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def tab(self, address: str, width: int = 1280, height: int = 900, dark: bool = False, scale: float = 1) -> Tab:
        """A page in a window of this size and these colours."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}])
        tab.call("Page.navigate", url=address)
        return tab


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """A command for this page."""
        return self._browser.call(method, self._session, **given)

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript, or of what it promises."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression[:200]}: {found['exceptionDetails']}"[:1000])
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """The same, as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while not (found := self.ask(expression)):
            if time.monotonic() > end:
                raise BrowserError(
                    f"{expression} did not become true. The page says: {self.ask('document.body.innerText')[:1500]}"
                )
            time.sleep(0.05)
        return found

    def press(self, key: str) -> None:
        """A key that has no text."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode={"Tab": 9, "ArrowLeft": 37}.get(key, 0),
            )

    def complaints(self) -> list[str]:
        """What the page and the browser reported as wrong: exceptions, errors of the console, refused content."""
        self.ask("1")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            given = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(given["exceptionDetails"].get("exception", given))[:500])
            elif event["method"] == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
            elif event["method"] == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
                found.append(str(given["args"])[:500])
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        self.ask("1")
        found = [each for each in self._browser.events if each.get("sessionId") == self._session]
        return [each["params"]["request"]["url"] for each in found if each["method"] == "Network.requestWillBeSent"]

    def picture(self, path: Path, height: int | None = None) -> None:
        """A picture of the window, or of the page down to a height."""
        given: dict[str, Any] = {"format": "png"}
        if height:
            width = self.ask("innerWidth")
            given |= {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
            }
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **given)["data"]))

    def close(self) -> None:
        """Close it, and forget what it said."""
        self._browser.call("Target.closeTarget", targetId=self._target)
        self._browser.events = [each for each in self._browser.events if each.get("sessionId") != self._session]


@contextmanager
def started() -> Iterator[Browser]:
    """A browser with a profile of its own, which ends with the block."""
    found = program()
    if found is None:
        raise BrowserError(MISSING)
    pipes = [*os.pipe(), *os.pipe()]
    # The browser has its ends as 3 and 4: none of ours may be there.
    theirs_read, ours_write, ours_read, theirs_write = (
        fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (pipes[0], pipes[1], pipes[2], pipes[3])
    )
    for each in pipes:
        os.close(each)

    def connect() -> None:
        os.dup2(theirs_read, 3)
        os.dup2(theirs_write, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The sandbox does not work for root, as whom tests may run; the pages are the tests' own.
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-proxy-server",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        process = subprocess.Popen(
            [found, *options],
            pass_fds=(3, 4),
            preexec_fn=connect,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        browser = Browser(process, ours_read, ours_write)
        try:
            yield browser
        finally:
            try:
                browser.call("Browser.close")
                process.wait(20)
            except (BrowserError, OSError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()
            os.close(ours_read)
            os.close(ours_write)
