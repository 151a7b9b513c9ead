"""Runs a command whose hosts' modules are forked from one process that has imported what each of them imports.

    python module_server.py SOCKET LIBRARIES STAND_INS COMMAND [ARGUMENT ...]

LIBRARIES is the folder that Ansible is installed in.

To start Python, and to import and compile Ansible's part of a module, costs ten times what the module does. Nothing
else is different: a module has the environment, folder and descriptors of the interpreter that it was given to, and the
stand-ins take hold of its process before its own code is read.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import importlib
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import NoReturn


def serve(place: str, libraries: str, stand_ins: str, command: list[str]) -> int:
    """Run ``command`` to its end, and the modules of its hosts; its exit code."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(place)
    server.listen(512)
    wake, woken = socket.socketpair()
    for end in (wake, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Who kills this process means the command.
    main = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], env={**os.environ, "STAND_IN_MODULES": place})
    sys.path.append(libraries)
    import ansible.module_utils.basic  # noqa: F401

    sys.path.pop()
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as looking:
        looking.register(server, selectors.EVENT_READ)
        looking.register(wake, selectors.EVENT_READ)
        while True:
            for key, _events in looking.select():
                if key.fileobj is server:
                    asking, _ = server.accept()
                    others = [server, wake, woken, *running.values()]
                    running[start(asking, stand_ins, main.pid, others)] = asking
                else:
                    wake.recv(4096)
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                code = os.waitstatus_to_exitcode(status)
                if pid == main.pid:
                    return code
                asking = running.pop(pid)
                with asking, contextlib.suppress(BrokenPipeError):  # who asked may have been killed
                    asking.send(bytes([code if code >= 0 else 128 - code]))


def start(asking: socket.socket, stand_ins: str, controller: int, others: list[socket.socket]) -> int:
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
        arguments, environment, folder, umask = marshal.loads(request)
        environment[b"STAND_IN_CONTROLLER"] = str(controller).encode()
        os.chdir(folder)
        os.umask(umask)
        be(arguments, environment, list(descriptors), stand_ins)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def be(arguments: list[str], environment: dict[bytes, bytes], descriptors: list[int], stand_ins: str) -> NoReturn:
    """Be the interpreter of a host."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environb.update(environment)
    code = 1
    try:
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


def main() -> None:
    """End as the command does, by its signal too."""
    place, libraries, stand_ins, *command = sys.argv[1:]
    code = serve(place, libraries, stand_ins, command)
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
