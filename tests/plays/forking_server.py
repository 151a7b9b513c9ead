"""Starts programs of the plays as copies of one process that has imported what each of them imports.

    python forking_server.py modules SOCKET LIBRARIES STAND_INS
    python forking_server.py playbooks SOCKET LIBRARIES

LIBRARIES is the folder that Ansible is installed in. It serves until its standard input ends.

`modules`: to start Python, and to import and compile Ansible's part of a module, costs ten times what the module does.
A module has the environment, folder and descriptors of the interpreter that it was given to, and the stand-ins take
hold of its process before its own code is read.

`playbooks`: a quarter of what `ansible-playbook` takes for a role is to start. The configuration is read anew in each
copy.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import marshal
import os
import random
import selectors
import signal
import socket
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

Start = Callable[[list[str]], None]
#: What a run of a role imports as it goes.
PLUGINS = (
    "action.command", "action.copy", "action.debug", "action.normal", "action.set_fact", "action.template",
    "cache.memory", "connection.local", "filter.core", "filter.encryption", "filter.mathstuff", "filter.urls",
    "filter.urlsplit", "inventory.auto", "inventory.host_list", "inventory.ini", "inventory.script", "inventory.yaml",
    "shell.sh", "strategy.linear", "test.core", "test.files", "test.mathstuff", "test.uri", "vars.host_group_vars",
)  # fmt: skip


def serve(place: str, start: Start) -> None:
    """Fork whatever is asked for, until standard input ends."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(f"{place}.new")
    server.listen(512)
    Path(f"{place}.new").rename(place)  # who sees it may connect
    wake, woken = socket.socketpair()
    for end in (wake, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as looking:
        for each in (server, wake, sys.stdin):
            looking.register(each, selectors.EVENT_READ)
        while True:
            for key, _events in looking.select():
                if key.fileobj is sys.stdin:
                    for pid in running:
                        os.kill(pid, signal.SIGKILL)
                    return
                if key.fileobj is server:
                    asking, _ = server.accept()
                    running[fork(asking, start, [server, wake, woken, *running.values()])] = asking
                else:
                    wake.recv(4096)
            while running:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                code = os.waitstatus_to_exitcode(status)
                with running.pop(pid) as asking, contextlib.suppress(BrokenPipeError):  # who asked may have been killed
                    asking.send(bytes([code if code >= 0 else 128 - code]))


def fork(asking: socket.socket, start: Start, others: list[socket.socket]) -> int:
    """Fork what ``asking`` asks for; its process number. ``others`` are what the fork must not keep open."""
    length, ancillary, _flags, _address = asking.recvmsg(4, socket.CMSG_SPACE(12))
    descriptors = array.array("i")
    descriptors.frombytes(ancillary[0][2])
    size = int.from_bytes(length, "big")
    request = b""
    while len(request) < size:
        request += asking.recv(size - len(request))
    pid = os.fork()
    if not pid:
        for each in (asking, *others):
            each.close()
        be(start, list(descriptors), *marshal.loads(request))
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def be(
    start: Start, descriptors: list[int], arguments: list[str], environment: dict[bytes, bytes], folder: Any, umask: int
) -> NoReturn:
    """Be the program, to its end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environb.update(environment)
    random.seed()
    code = 1
    try:
        start(arguments)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def module(stand_ins: str) -> Start:
    """What is the interpreter of a host."""
    import ansible.module_utils.basic  # noqa: F401

    def start(arguments: list[str]) -> None:
        sys.argv = arguments or [""]
        name = arguments[0] if arguments else "<stdin>"
        source = Path(name).read_bytes() if arguments else sys.stdin.buffer.read()
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        if arguments:
            main.__file__ = name
        sys.path[0] = str(Path(name).parent) if arguments else ""
        sys.path.insert(1, stand_ins)
        importlib.import_module("sitecustomize")
        exec(compile(source, name, "exec"), main.__dict__)

    return start


def playbook() -> Start:
    """What is ansible-playbook."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    fast_playbook: Any = importlib.import_module("fast_playbook")
    sys.path.pop(0)
    import ansible.cli.playbook

    for name in PLUGINS:
        importlib.import_module(f"ansible.plugins.{name}")
    kept = fast_playbook.kept()
    fast_playbook.load_filters()
    gc.disable()

    def start(arguments: list[str]) -> None:
        os.environ["STAND_IN_CONTROLLER"] = str(os.getpid())
        sys.argv = ["ansible-playbook", *arguments]
        fast_playbook.read_configuration()
        fast_playbook.use(kept)
        ansible.cli.playbook.main()

    return start


def main() -> None:
    """Import, and serve."""
    kind, place, libraries, *more = sys.argv[1:]
    sys.path.append(libraries)
    start = module(*more) if kind == "modules" else playbook()
    sys.path.remove(libraries)
    gc.collect()
    gc.freeze()  # what each copy has of it stays out of its collections
    serve(place, start)


if __name__ == "__main__":
    main()
