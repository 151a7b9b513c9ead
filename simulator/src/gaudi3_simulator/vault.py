"""The web server of the vendor's repository: hands out a folder, and sends whoever wants a package to another host.

It runs in a container of its own, as a file: it may import nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import json
import os
import sys
from pathlib import Path
from typing import BinaryIO

PACKAGES = (".deb", ".rpm")
TARBALL = ".tgz"
# The part of the tree that clients of a container registry ask for, and their paths of blobs and manifests below it.
REGISTRY, BLOB, MANIFEST = "/v2/", "/blobs/sha256:", "/manifests/"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, downloads only under the name of the storage host."""

    storage = ""
    stored_whole = False

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """Answer the request of a download with a redirect, as the vendor's index does (seen with 1.24.1)."""
        host = self.headers.get("Host", "").partition(":")[0]
        if self.storage and host != self.storage and self._is_download():
            assert isinstance(self.server, http.server.HTTPServer)
            port = self.server.server_port
            self.send_response(302)
            self.send_header("Location", f"http://{self.storage}{'' if port == 80 else f':{port}'}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        return super().send_head()

    def _is_download(self) -> bool:
        path = self.path.partition("?")[0]
        other = path.endswith(TARBALL) or (path.startswith(REGISTRY) and BLOB in path)
        return path.endswith(PACKAGES) or (self.stored_whole and other)

    def guess_type(self, path: str | os.PathLike[str]) -> str:
        """The kind of a manifest is the one that it names itself; clients of a registry go by the header."""
        if self.path.startswith(REGISTRY) and MANIFEST in self.path and Path(path).is_file():
            return str(json.loads(Path(path).read_text())["mediaType"])
        return super().guess_type(path)

    def copyfile(self, source, outputfile):  # type: ignore[no-untyped-def]
        """Send a file. Who only looks whether it is there ends the connection before."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)

    def end_headers(self) -> None:
        """Say to clients of a registry that this is one."""
        # A request that cannot be read has no path.
        if getattr(self, "path", "").startswith(REGISTRY):
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        super().end_headers()


def server(
    address: str, port: int, folder: str, storage: str, stored_whole: bool = False
) -> http.server.ThreadingHTTPServer:
    """The server; without a name for the storage host nothing is redirected.

    With ``stored_whole`` the storage host has tarballs and the blobs of images too, and not packages alone.
    """
    handler = type("StorageHandler", (Handler,), {"storage": storage, "stored_whole": stored_whole})
    return http.server.ThreadingHTTPServer((address, port), functools.partial(handler, directory=folder))


if __name__ == "__main__":
    server("", int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:] == ["whole"]).serve_forever()
