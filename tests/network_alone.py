"""A command in a network that has the web server of a folder and nothing else. Only root makes one."""

from __future__ import annotations

import fcntl
import functools
import http.server
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ADDRESS = "http://127.0.0.1:8099"
_SET_FLAGS, _UP = 0x8914, 1


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Says nothing of requests."""

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


def alone_with(folder: Path) -> tuple[str, ...]:
    """What goes before a command; the folder is at ADDRESS."""
    return "unshare", "--net", sys.executable, __file__, str(folder)


def main() -> int:
    """In the new network: the exit status of the command, after the folder."""
    with socket.socket(type=socket.SOCK_DGRAM) as asked:
        fcntl.ioctl(asked, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
        try:
            asked.connect(("192.0.2.1", 9))
        except OSError:
            pass
        else:
            sys.exit("This network has a way out.")
    handler = functools.partial(Quiet, directory=sys.argv[1])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 8099), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return subprocess.run(sys.argv[2:], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
