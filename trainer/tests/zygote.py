"""Starts jobs without importing torch each time: a process that has imported everything forks launchers on demand.

The launcher is the real one (`gaudi3_scale.launch`, torchrun's agent); it forks its workers where it would otherwise
start a new interpreter, and nothing else is different. Lines of JSON on standard input and output:

    {"id": 1, "kind": "launch", "arguments": [...], "environment": {...}, "log": "path"}   ->   {"id": 1, "pid": 4711}
                                                                              at its end   ->   {"id": 1, "code": 75}
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
PATIENCE, IDLE = 900, 180
"""Seconds within which the zygote answers, and within which it must have had some time of a processor."""


class Client:
    """The test's end."""

    def __init__(self, *more: Path, traced: bool = True) -> None:
        """With `more` folders to import from, such as that of the simulated device, which torch then loads itself.

        Without `traced`, coverage sees nothing of what it starts.
        """
        from conftest import PACKAGES

        path = os.pathsep.join(map(str, [PACKAGES, Path(__file__).parent, *more]))
        environment = {key: os.environ[key] for key in os.environ if traced or not key.startswith("COVERAGE_PROCESS_")}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**environment, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers: dict[int, dict[str, int]] = {}
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def start(
        self, kind: str, arguments: Sequence[str], environment: dict[str, str], log: Path, errors: Path | None = None
    ) -> Started:
        """Start a `launch` by gaudi3_scale, a `torchrun`, a single `worker`, or a `python` with its arguments.

        What it says goes into `log`, or what it says of errors into a file of its own.
        """
        number = len(self._answers)
        self._answers[number] = {}
        request = {
            "id": number,
            "kind": kind,
            "arguments": list(arguments),
            "environment": environment,
            "log": str(log),
            "errors": str(errors or log),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        with self._changed:
            self._answered(self._answers[number])
        return Started(self._answers[number], self._changed, log)

    def _answered(self, answer: dict[str, int]) -> None:
        """Wait for a process number, for as long as the zygote works; with `_changed` held.

        Its imports take five seconds of a processor, which are minutes on a machine that does much else.
        """
        worked, began = self._seconds(), time.monotonic()
        idle_since = began
        while "pid" not in answer:
            assert not self._ended, f"the zygote has ended with {self._process.wait()}: look at its errors above"
            self._changed.wait(1)
            if (now := self._seconds()) > worked + 0.1:
                worked, idle_since = now, time.monotonic()
            clock = time.monotonic()
            assert clock - idle_since < IDLE, f"the zygote has done nothing for {IDLE} s and does not answer"
            assert clock - began < PATIENCE, f"the zygote has worked for {now:.0f} s and does not answer"

    def _seconds(self) -> float:
        """Processor time of the zygote; what it had when it has ended is of no interest."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it; what it started has ended before."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._changed:
                self._answers[answer.pop("id")].update(answer)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Started:
    """A process the zygote started."""

    def __init__(self, answer: dict[str, int], changed: threading.Condition, log: Path) -> None:
        self._answer = answer
        self._changed = changed
        self.log = log
        self.pid = answer["pid"]

    def poll(self) -> int | None:
        """Its exit code, minus the signal that killed it; None while it runs."""
        return self._answer.get("code")

    def wait(self, seconds: float) -> int:
        """Wait for its end."""
        with self._changed:
            assert self._changed.wait_for(lambda: "code" in self._answer, seconds), f"still runs after {seconds} s"
        return self._answer["code"]

    @property
    def returncode(self) -> int | None:
        """As `Popen.returncode`."""
        return self.poll()

    def communicate(self, timeout: float = 120) -> tuple[str, None]:
        """As `Popen.communicate`."""
        self.wait(timeout)
        return self.output(), None

    def output(self) -> str:
        """What it and its workers wrote."""
        return self.log.read_text(errors="replace")


class Forked:
    """What torchrun's handler needs of a `subprocess.Popen`."""

    def __init__(self, action: Callable[[], object], log: str | None = None, errors: str | None = None) -> None:
        self.returncode: int | None = None
        # Python drops what a handler raises in the hooks around a fork, and logging's lock would stay locked for good.
        # `subprocess`, with which torchrun starts processes, has no such hooks.
        heard: list[int] = []
        handlers = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in SIGNALS}
        self.pid = os.fork()
        if self.pid:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for number in heard:
                signal.raise_signal(number)
            return
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        code = 1
        try:
            os.setsid()
            if log is not None:
                for number, path in ((1, log), (2, errors or log)):
                    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            action()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        """As `Popen.poll`."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """As `Popen.wait`."""
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.01)
        return code


def work(arguments: Sequence[str], environment: dict[str, str], name: str = "gaudi3-train") -> NoReturn:
    """Be `gaudi3-train`, or a script of the tests."""
    os.environ.clear()
    os.environ.update(environment)
    import interpreter
    import objects

    if name == "python":
        interpreter.be(arguments)
    if name == "gaudi3-train":
        objects.forbid()
    if name == "own_trainer":
        import own_trainer

        own_trainer.main(Path(arguments[0]), "plain" in arguments)
        sys.exit(0)
    if name.endswith(".py"):
        import runpy

        sys.argv = [name, *arguments]
        runpy.run_path(name, run_name="__main__")
        sys.exit(0)
    if name == "patient_worker":
        import old_launchers

        old_launchers.worker(Path(arguments[0]), [float(part) for part in arguments[1:]])
    import disk_full_job
    import nan_job
    import paused_job

    disk_full_job.install()
    paused_job.install()
    nan_job.install()
    from gaudi3_scale.cli import main

    sys.argv = ["gaudi3-train", *arguments]
    main()


def fail(when: str) -> None:
    """Have torchrun's agent fail as a spare node, as the nodes meet, or at work."""
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.rendezvous import RendezvousConnectionError, api, dynamic_rendezvous

    usual = LocalElasticAgent._start_workers

    def no_store(*_: object, **__: object) -> NoReturn:
        raise RendezvousConnectionError("the store was lost for a moment")

    def start(agent: LocalElasticAgent, group: Any) -> Any:
        dynamic_rendezvous.DynamicRendezvousHandler.num_nodes_waiting = no_store  # asked by a node at work
        return usual(agent, group)

    if when == "spare":
        dynamic_rendezvous._should_keep_alive = lambda _: 1 / 0  # asked by a node that waits, and by its timer
    elif when == "as it meets":
        api.RendezvousStoreInfo.build = staticmethod(no_store)  # before it says its address
    else:
        LocalElasticAgent._start_workers = start


def launch(arguments: Sequence[str], environment: dict[str, str]) -> NoReturn:
    """Be the launcher of `gaudi3_scale`."""
    fork_workers(environment, lambda args: (args[0], args[1:]))
    if "OLD_TORCH" in environment:
        import old_launchers

        old_launchers.install(environment["OLD_TORCH"])
    if "FAILS" in environment:
        fail(environment["FAILS"])
    from gaudi3_scale.launch import torchrun as launcher

    launcher.main(arguments)


def torchrun(arguments: Sequence[str], environment: dict[str, str]) -> None:
    """Be torchrun, of which the arguments end with `-m gaudi3_scale` and its own."""
    fork_workers(environment, lambda args: ("gaudi3-train", args[args.index("gaudi3_scale") + 1 :]))
    from torch.distributed import run

    run.main(list(arguments))


def python(arguments: Sequence[str], environment: dict[str, str]) -> NoReturn:
    """Be a Python, and fork the workers where it is torchrun."""
    fork_workers(environment, lambda args: ("python", args[1:]))
    import interpreter

    interpreter.be(arguments)


def fork_workers(environment: dict[str, str], parse: Callable[[Sequence[str]], tuple[str, Sequence[str]]]) -> None:
    """Have torchrun's agent fork its workers where it would start a new interpreter."""
    os.environ.clear()
    os.environ.update(environment)
    from torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler import SubprocessHandler

    def fork(handler: Any, args: Sequence[str], env: dict[str, str]) -> Forked:
        name, settings = parse(args)
        started = Forked(lambda: work(settings, env, name))
        # The worker runs, and torchrun does not know it yet: as long as a loaded machine likes.
        time.sleep(float(environment.get("SLOW_START", "0")))
        return started

    SubprocessHandler._popen = fork  # type: ignore[method-assign, assignment]


def main() -> None:
    """Serve until standard input ends."""
    import lightning.pytorch  # noqa: F401
    import torch
    import torch.distributed.run
    from transformers.models.llama import modeling_llama  # noqa: F401

    import gaudi3_scale.job.fit  # noqa: F401

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # or the first collection of each copy goes through all of torch's objects
    running: dict[int, Forked] = {}
    buffer = b""
    os.set_blocking(0, False)
    while True:
        try:
            read = os.read(0, 65536)
            if not read:
                return
            buffer += read
        except BlockingIOError:
            time.sleep(0.01)
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            request = json.loads(line)
            action = {"launch": launch, "torchrun": torchrun, "worker": work, "python": python}[request["kind"]]
            environment = {**os.environ, **request["environment"]}
            running[request["id"]] = started = Forked(
                lambda action=action, r=request, e=environment: action(r["arguments"], e),
                request["log"],
                request["errors"],  # type: ignore[misc]
            )
            print(json.dumps({"id": request["id"], "pid": started.pid}), flush=True)
        for number, process in list(running.items()):
            if (code := process.poll()) is not None:
                del running[number]
                print(json.dumps({"id": number, "code": code}), flush=True)


if __name__ == "__main__":
    main()
