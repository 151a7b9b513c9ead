"""A vendor's host and a package index with stand-ins for PyTorch, behind the server of the simulator."""

from __future__ import annotations

import base64
import hashlib
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gaudi3_simulator import vault
from gaudi3_simulator.vendor import pytorch

RELEASE = "1.23.0-695"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
#: As the vendor calls its own builds.
TORCH = "2.9.0a0+git1234567"
UPSTREAM = "2.13.0"


def wheel(
    folder: Path, name: str, version: str, requires: Sequence[str] = (), files: Mapping[str, str] | None = None
) -> Path:
    """A wheel of one module."""
    about = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n",
        **(files or {}),
        f"{about}/METADATA": metadata + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for path, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}\n")
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        for path, text in {**content, f"{about}/RECORD": "".join(rows) + f"{about}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return place


class Vendor:
    """The folder of such a host: the vendor's tarballs, and an index of other packages."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "vendor"
        self.index = self.folder / "pypi/simple"
        self.plugin = True
        #: What else stands in the module torch.
        self.torch_text = ""

    def tarballs(self, *releases: str) -> list[Path]:
        """Build the tarballs of releases, as the simulator does, of stand-ins."""
        version = "1.23.0.695+gaudi3.simulator"
        about = {
            f"habana_torch_plugin-{version}.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: habana-torch-plugin\n"
            f"Version: {version}\n"
        }
        files = {"habana_frameworks/__init__.py": "", "habana_frameworks/torch/__init__.py": "import torch\n"}
        device = wheel(
            self.root / f"device-{self.plugin}",
            "gaudi3_hpu_simulator",
            "0.1.0",
            (),
            files | (about if self.plugin else {}),
        )
        inputs = f"{self.plugin} {self.torch_text}"
        return pytorch.build_shelf(
            self.folder, releases or (RELEASE,), PYTHON, device, self._gather, lambda _: None, inputs
        )

    def _gather(self, folder: Path) -> None:
        text = f"__version__ = {TORCH!r}\nhpu = object()\n{self.torch_text}"
        wheel(folder, "torch", TORCH, ["filelock"], {"torch/__init__.py": text})
        wheel(folder, "filelock", "4.2.11")

    def offer(self, name: str, version: str, *requires: str) -> str:
        """Put a package into the index; returns its pin with its hash."""
        made = wheel(self.folder / "pypi/files", name, version, requires)
        page = self.index / name.replace("_", "-") / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        before = page.read_text() if page.exists() else ""
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        page.write_text(f'{before}<a href="../../files/{made.name}#sha256={digest}">{made.name}</a>\n')
        return f"{name}=={version} --hash=sha256:{digest}"

    def offer_usual(self) -> list[str]:
        """Packages that ask for torch, beside an upstream torch and a newer filelock; returns a list of pins."""
        self.offer("torch", UPSTREAM)
        filelock = self.offer("filelock", "9.9.9")
        lightning = self.offer("lightning", "2.6.6", "torch>=2.10", "filelock>=9")
        return ["# of a test", lightning, filelock, self.offer("rich", "15.0.0", "not-there")]

    def tamper(self, name: str, version: str) -> None:
        """Put another file under the name of one that was offered."""
        old = self.folder / "pypi/files" / f"{name}-{version}-py3-none-any.whl"
        before = hashlib.sha256(old.read_bytes()).hexdigest()
        made = wheel(old.parent, name, version, files={"tampered.pth": "# harmless\n"})
        page = self.index / name / "index.html"
        page.write_text(page.read_text().replace(before, hashlib.sha256(made.read_bytes()).hexdigest()))

    @contextmanager
    def served(self, storage: str = "localhost") -> Iterator[str]:
        """The address of the host, which sends whoever wants a tarball to the host ``storage``."""
        server = vault.server("127.0.0.1", 0, str(self.folder), storage, storage != "")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
