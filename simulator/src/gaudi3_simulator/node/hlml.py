"""The answering side of ``/usr/lib/habanalabs/libhlml.so``.

The library (``simulator/hlml``) starts this module as a process when a program initialises it, and asks one line at a
time over standard input, which is a socket: a name and numbers, ``temperature 3 0``. The answer is one line of fields
between tabs, the first of them the library's return code. Each question reads the node again, so a program sees a fault
as soon as hl-smi does.
"""

from __future__ import annotations

import os

from . import hlml_node, node, paths, releases, store
from .hlml_codes import SUCCESS, UNKNOWN, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .hlml_values import Field

LENGTH = 65536


def main(release: str) -> int:
    """Answer the library that started this process; returns the exit code."""
    _let_go()
    serve(0, releases.release_info(release))
    return 0


def serve(socket: int, info: releases.Release) -> None:
    """Answer questions until the library closes its end."""
    waiting = b""
    while True:
        received = os.read(socket, LENGTH)
        if not received:
            return
        *questions, waiting = (waiting + received).split(b"\n")
        for question in questions:
            _write(socket, answer(question.decode(errors="replace"), info))


def answer(question: str, info: releases.Release) -> str:
    """The line that answers a question."""
    name, *words = question.split(" ")
    fields: list[Field]
    try:
        code, fields = SUCCESS, hlml_node.value(node.Node.load(), info, name, words)
    except Refused as refused:
        code, fields = refused.code, []
    except (store.StateError, OSError, LookupError, ValueError):
        code, fields = UNKNOWN, []
    return "\t".join(str(field) for field in (code, *fields)) + "\n"


def _let_go() -> None:
    """Hold nothing of the program that uses the library: neither its open files, as a card's, nor its folder."""
    os.chdir(paths.root() or "/")
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own descriptor


def _write(socket: int, text: str) -> None:
    rest = text.encode()
    while rest:
        rest = rest[os.write(socket, rest) :]
