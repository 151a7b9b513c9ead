"""A Python that is started as a copy of one which has imported everything already: to import torch takes five seconds.

For programs of which the import is not what is tested. The rest is as where a new interpreter starts: arguments,
environment, descriptors, the exit code, and what is called at the end.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from zygote import Client


def run(client: Client, *arguments: str, timeout: float = 280, **environment: str) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([sys.executable, *arguments])` with its output as text, and with more of an environment."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        started = client.start("python", arguments, environment, output, errors)
        try:
            code = started.wait(timeout)
        finally:
            if started.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(started.pid, signal.SIGKILL)
        said = [path.read_text(errors="replace") for path in (output, errors)]
    return subprocess.CompletedProcess(arguments, code, *said)


def be(arguments: Sequence[str]) -> NoReturn:
    """Do what Python does with these arguments, and end."""
    code = 1
    try:
        if device := sys.modules.get("gaudi3_hpu_simulator.extension"):  # its settings are those of this environment
            device.extension.cache_clear()
            device.extension()
        _do(list(arguments))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            threading._shutdown()  # type: ignore[attr-defined]  # waits for its threads
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        ctypes.PyDLL(None).exit(code)  # a card is given up in order
        raise AssertionError("exit() returns")


def _do(words: list[str]) -> None:
    while words[0] in ("-u", "-W"):
        if words.pop(0) == "-W":
            warnings.simplefilter(words.pop(0))  # type: ignore[arg-type]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    kind = words.pop(0)
    if kind == "-c":
        code = words.pop(0)
        sys.argv = ["-c", *words]
        sys.path.insert(0, "")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        sys.argv = list(words)
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *words]
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")
