# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Run one replica of vLLM under systemd: tell when it is ready, and end it without losing an answer.

    gaudi_serving_replica.py /etc/gaudi3-scale/serving/replica-1.json

Facts that it rests on (vLLM 0.32.0, run on 2026-11-27): nothing listens until the engine is warm, and SIGTERM is lost
until then; while the server drains, /health still says 200; after a Worker's death it ends with exit code 0; a server
that is killed leaves its engine's processes running.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

#: Seconds between two looks at the engine, and for which it may say that it is dead before it is ended.
LOOK, DEAD = 0.25, 30.0
#: Seconds that the balancer has to see a replica that is ready: it looks twice a second.
UP = 15.0
#: Seconds that the engine has between SIGTERM and SIGKILL once nobody waits for it: a Worker needed 14.
LEAVE = 25.0
_PROGRESS = re.compile(r"\[Warmup\]\[(\w+)\]\[(\d+)/(\d+)\]")

_ERROR = re.compile(r"\b(?:\w*Error|\w*Exception|error): ")
#: Errors that only follow from the one before.
_FOLLOWS = re.compile(r"EngineDeadError|root cause above|stack trace above|Engine core initialization failed")


def notify(**words: str) -> None:
    """Tell systemd (sd_notify); nothing where it did not ask."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if place:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as telling:
            telling.connect("\0" + place[1:] if place.startswith("@") else place)
            telling.sendall("\n".join(f"{name.upper()}={word}" for name, word in words.items()).encode())


class Balancer:
    """This replica's place in HAProxy, by its socket. A balancer that is not there has nobody to be told of."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._socket, self._server = given.get("socket", ""), given.get("server", "")

    def _ask(self, command: str) -> str:
        if not self._socket:
            return ""
        try:
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(5)
                asking.connect(self._socket)
                asking.sendall(f"{command}\n".encode())
                return b"".join(iter(lambda: asking.recv(65536), b"")).decode(errors="replace")
        except OSError:
            return ""

    def set(self, state: str) -> None:
        """``ready`` or ``drain``."""
        said = self._ask(f"set server {self._server} state {state}").strip()
        if said:
            print(f"The balancer does not take {self._server} as {state}: {said}", flush=True)

    def running(self) -> int:
        """How many requests it has given to this replica and waits for."""
        cells = self._statistics()
        return int(cells[4]) if cells and cells[4].isdigit() else 0

    def wait_until_up(self) -> None:
        """Until its own look at the replica has found it; else the last one that answers might be ended before."""
        limit = time.monotonic() + UP
        while (cells := self._statistics()) and not cells[17].startswith("UP") and time.monotonic() < limit:
            time.sleep(LOOK)

    def _statistics(self) -> list[str]:
        """This replica's line of ``show stat``; empty without a balancer that knows it."""
        backend, _slash, name = self._server.partition("/")
        lines = (line.split(",") for line in self._ask(f"show stat {backend} 4 -1").splitlines())
        return next((cells for cells in lines if cells[:2] == [backend, name] and len(cells) > 17), [])


class Replica:
    """The engine, from its start to its end."""

    def __init__(self, settings: Mapping[str, Any], release: str) -> None:
        self._settings = settings
        self._release = release
        self._balancer = Balancer(settings.get("balancer") or {})
        self._ready = False
        self._told = 0
        self._errors: list[str] = []
        self._child: subprocess.Popen[str] | None = None

    def run(self) -> int:
        """Start it, wait until it is warm, watch it, end it. The exit code is 0 for an end that was asked for."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._tell())
        signal.signal(signal.SIGINT, lambda _number, _frame: self._tell())
        self._clear()
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **self._settings["environment"]}
        argv = [word.replace("{model}", f"{self._release}/model") for word in self._settings["argv"]]
        self._child = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        # Never waited for to its end: a process that is left over holds the pipe, and systemd ends it once this has.
        thread = threading.Thread(target=self._pass_on, args=(self._child.stdout,), daemon=True)
        thread.start()
        try:
            said = self._watch()
        finally:
            self._kill()
        if not said:
            self._clear()
            return 0
        thread.join(2)
        last = f" Its last error: {self._errors[-1]}" if self._errors else ""
        self._write({"ended": f"{said}{last}", "release": self._release})
        print(f"{said}{last}", flush=True)
        return 1

    def _tell(self) -> None:
        self._told += 1

    # Its life

    def _watch(self) -> str:
        """Why it ended; empty where that was asked for."""
        began, dead = time.monotonic(), 0.0
        notify(status="starting")
        for status in self._looks():
            if self._told:
                return self._end()
            if not self._ready:
                if status == 200:
                    # Healthy is not able: what a kernel does not support comes out with the first token.
                    said = self._first_token()
                    if said:
                        return said
                    self._is_ready(time.monotonic() - began)
                elif time.monotonic() - began > self._settings["start_seconds"]:
                    return f"The engine was not ready within {self._settings['start_seconds']} seconds."
            dead = 0.0 if status != 503 else dead or time.monotonic()
            if self._ready and dead and time.monotonic() - dead > DEAD:
                return f"The engine has said for {DEAD:.0f} seconds that it is dead."
        code = self._child.returncode if self._child else None
        return (
            "" if self._told else f"The engine ended with exit code {code}{'' if self._ready else ', not yet ready'}."
        )

    def _looks(self) -> Iterator[int]:
        """The status of its page of health again and again, 0 where nobody answers, for as long as it lives."""
        while self._child and self._child.poll() is None:
            yield self._health()
            # A signal ends the sleep only by its handler; the pause is what it may be late.
            time.sleep(LOOK if not self._ready else 4 * LOOK)

    def _health(self) -> int:
        host, port = self._settings["health"]
        asking = http.client.HTTPConnection(host, port, timeout=5)
        try:
            asking.request("GET", "/health")
            return asking.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            asking.close()

    def _first_token(self) -> str:
        """Why it makes no token; empty where it does."""
        asked = json.dumps({"model": self._settings["probe"], "prompt": "a", "max_tokens": 1})
        asking = http.client.HTTPConnection(*self._settings["health"], timeout=self._settings["start_seconds"])
        try:
            asking.request("POST", "/v1/completions", asked, {"Content-Type": "application/json"})
            answer = asking.getresponse()
            body = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return f"The engine did not answer its first request ({type(error).__name__})."
        finally:
            asking.close()
        return (
            "" if answer.status == 200 else f"The engine answered its first request with {answer.status}: {body[:200]}"
        )

    def _is_ready(self, seconds: float) -> None:
        self._ready = True
        self._balancer.set("ready")
        self._balancer.wait_until_up()
        self._write({"ready": True, "release": self._release, "seconds": round(seconds, 1)})
        print(f"Ready after {seconds:.0f} s, with {self._release}.", flush=True)
        notify(ready="1", status=f"ready, with {Path(self._release).name}")

    def _end(self) -> str:
        """Out of the balancer first; then the streams; then the engine. A second signal cuts it short."""
        asked = self._told
        if not self._ready:
            print("Ended before it was ready: the engine does not take SIGTERM yet.", flush=True)
            return ""
        limit = time.monotonic() + self._settings["drain_seconds"]
        notify(stopping="1", status="draining")
        self._balancer.set("drain")
        # What the balancer has just handed over is not counted for a moment.
        time.sleep(2 * LOOK)
        while self._told == asked and (running := self._balancer.running()) and time.monotonic() < limit:
            notify(status=f"draining, {running} running")
            time.sleep(LOOK)
        if self._child:
            self._child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(LEAVE)
        return ""

    def _kill(self) -> None:
        """End what is left: Workers of a dead server, and a container whose client is gone."""
        if self._child:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        if self._settings.get("remove"):
            subprocess.run(self._settings["remove"], check=False, capture_output=True)

    # What it says

    def _pass_on(self, lines: IO[str] | None) -> None:
        """Its output goes on to the journal; progress and errors are kept."""
        for line in lines or ():
            print(line, end="", flush=True)
            if found := _PROGRESS.search(line):
                notify(status=f"warming up, {found[1].lower()} {found[2]} of {found[3]}")
            elif _ERROR.search(line) and not _FOLLOWS.search(line):
                self._errors.append(" ".join(line.split())[-300:])

    def _clear(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            Path(self._settings["state"]).unlink()

    def _write(self, what: Mapping[str, Any]) -> None:
        """For whoever started it: what became of it."""
        draft = Path(f"{self._settings['state']}.new")
        draft.write_text(json.dumps(what), encoding="utf-8")
        draft.replace(self._settings["state"])


def main(arguments: list[str]) -> int:
    """Read the settings, choose the release, and run it."""
    settings = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    release = next((str(Path(link).resolve()) for link in settings["links"] if Path(link).is_dir()), "")
    if not release:
        print(f"There is no release to serve behind {' or '.join(settings['links'])}.", file=sys.stderr)
        return 1
    # The engine and its options are the release's: one that is rolled back to runs as it did.
    own = json.loads(Path(release, "release.json").read_text(encoding="utf-8"))["replicas"][settings["name"]]
    return Replica({**settings, **own}, release).run()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Not sys.exit: the thread may be within a read, and would be waited for.
    os._exit(code)
