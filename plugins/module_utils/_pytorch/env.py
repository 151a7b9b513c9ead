# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The vendor's PyTorch on a node: a virtual environment for each release, and a link to the one in use.

The environment's record is written last, once all files are on the disk. One without a record is a torn installation,
and is made again. So is one in which a file of the vendor's packages has another size than it was installed with.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Optional

from .._cards.file_access import first_closed, numbers_of
from .._files import make_folder, nearest_folder, sync_folder, sync_tree, write_file
from .._installed import forget, installing, torn, unfinished
from .._pip import Pin, other_file
from .._pip import install as install_pins
from .._refusal import Refusal
from .pins import other_file_refusal
from .release import Tarball

Run = Callable[..., tuple[int, str, str]]

RECORD = "gaudi3-scale-pytorch.json"
DIGESTS = "pytorch-tarballs.json"
LINK = "torch"
PLUGIN = "habana-torch-plugin"
#: Free space that is asked for, in sizes of the tarball: itself, what is in it, and what becomes of that, which is not
#: packed. A guess; what the vendor's takes is not public.
ROOM = 5
#: And for the packages beside it.
ROOM_BESIDE = 1 << 30
#: Folders of Python modules of the driver's packages, which the vendor's images have on Python's path
#: (HabanaAI/Setup_and_Install 1.22.0, ``dockerfiles/pytorch``: ``habanalabs-graph.pth`` and ``PYTHONPATH``).
GRAPH_PATH = ("habanalabs-graph.pth", "/usr/lib/habanalabs\n")

#: Asks a Python about itself and its packages; none is imported, as torch alone takes seconds.
PROBE = """
import importlib.metadata, importlib.util, json, platform, re, sys, sysconfig
found = {}
for each in importlib.metadata.distributions():
    name = each.metadata["Name"]
    if name:
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), each.version)
print(json.dumps({"version": platform.python_version(), "purelib": sysconfig.get_path("purelib"),
                  "platlib": sysconfig.get_path("platlib"), "distributions": found,
                  "venv": all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))}))
"""
#: What a job does first. It acquires no card.
IMPORT = "import torch, habana_frameworks.torch; torch.hpu"


@dataclass(frozen=True)
class Python:
    """What a Python says of itself."""

    version: str
    purelib: str = ""
    platlib: str = ""
    #: Whether it can make virtual environments with pip in them.
    venv: bool = True
    distributions: Mapping[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> tuple[str, str]:
        """Where its packages are."""
        return self.purelib, self.platlib or self.purelib

    @property
    def torch(self) -> str:
        """Its torch; empty where it has none."""
        return self.distributions.get("torch", "")

    @property
    def plugin(self) -> str:
        """Its plugin for the cards; empty where it has none."""
        return self.distributions.get(PLUGIN, "")


class PytorchEnv:
    """The environment of one release below a folder of the node, ``root``."""

    def __init__(self, run: Run, root: str, release: str) -> None:
        self._run = run
        self.root = root
        self.folder = os.path.join(root, f"{LINK}-{release}")
        self.interpreter = os.path.join(self.folder, "bin", "python")
        self.link = os.path.join(root, LINK)

    def probe(self, python: str) -> Optional[Python]:
        """Ask a Python; None where there is no such program."""
        if not os.access(python, os.X_OK):
            return None
        rc, out, err = self._run([python, "-I", "-c", PROBE])
        try:
            answer = json.loads(out) if rc == 0 else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Refusal(
                f"{python} does not run on this node ({last(err, rc)}): set pytorch_python to a Python that does."
            )
        platlib = answer.get("platlib", "")
        return Python(answer["version"], answer["purelib"], platlib, bool(answer["venv"]), answer["distributions"])

    def made(self) -> Python:
        """Ask the environment's own Python, which an installation has just used."""
        found = self.probe(self.interpreter)
        if found is None:
            raise Refusal(f"{self.interpreter} is gone since the installation began: run the play again.")
        return found

    def record(self) -> dict[str, Any]:
        """What is known of the installation; nothing where it was not finished."""
        return read(os.path.join(self.folder, RECORD))

    def digests(self) -> dict[str, Any]:
        """SHA-256 of each tarball that was ever installed here."""
        return read(os.path.join(self.root, DIGESTS))

    def in_use(self) -> str:
        """The environment that the link points to, by its name."""
        try:
            return os.readlink(self.link)
        except OSError:
            return "no environment in use"

    def linked(self) -> bool:
        """Whether this release is the one in use."""
        return self.in_use() == os.path.basename(self.folder)

    def room(self) -> int:
        """Free bytes where the environment will be."""
        found = os.statvfs(nearest_folder(self.root))
        return found.f_bavail * found.f_frsize

    def make(self, python: str) -> None:
        """Make the environment, empty; what a torn installation left is removed."""
        make_folder(self.root)
        if os.path.lexists(self.folder):
            shutil.rmtree(self.folder)
        self.run_or_fail([python, "-m", "venv", self.folder], "The virtual environment of PyTorch cannot be made")

    def install(self, packed: str, tarball: Tarball, kind: str, environ: Mapping[str, str]) -> None:
        """Run the install.sh of a tarball with the environment active, as in the vendor's Dockerfiles."""
        draft = tempfile.mkdtemp(dir=self.root, prefix=".torch-")
        try:
            unpack(packed, draft)
            if not os.path.isfile(os.path.join(draft, "install.sh")):
                raise Refusal(f"{tarball.name} has no install.sh: it is not a tarball of the vendor's PyTorch.")
            path = os.pathsep.join([os.path.dirname(self.interpreter), os.environ.get("PATH", os.defpath)])
            self.run_or_fail(
                ["./install.sh", tarball.release.version, str(tarball.release.build), kind],
                f"install.sh of {tarball.name} failed",
                {"VIRTUAL_ENV": self.folder, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environ},
                draft,
            )
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def add(self, pins: Collection[Pin], environ: Mapping[str, str], found: Python) -> None:
        """Install exactly these packages, and nothing that they ask for: pip might bring another torch for one."""
        names = [pin.name for pin in pins]
        with installing(self.folder, names):
            forget(found.folders, set(names) & set(self.torn(found)))
            result = install_pins(self._run, self.interpreter, pins, environ)
            other = other_file(result[2])
            if result[0] != 0 and other:
                raise other_file_refusal(other, "pytorch_requirements")
            self.check(result, "The packages beside PyTorch cannot be installed")

    def torn(self, found: Python) -> dict[str, set[str]]:
        """Files of the environment's packages that are not as they were installed, by package."""
        known = self.record().get("unlike", {})
        wrong = torn(found.folders, unfinished(self.folder))
        return {name: files for name, files in wrong.items() if files - set(known.get(name, []))}

    def complaints(self, names: Iterable[str]) -> list[str]:
        """What pip finds missing or unfit of these packages' own requirements."""
        _rc, out, _err = self._run([self.interpreter, "-m", "pip", "--disable-pip-version-check", "check"])
        known = set(names)
        return [line.strip() for line in out.splitlines() if line.partition(" ")[0].lower().replace("_", "-") in known]

    def must_have_plugin(self, python: str, found: Python) -> None:
        """Refuse a Python that has no torch, or one without the plugin for the cards."""
        if not found.torch:
            raise Refusal(
                f"{python} has no torch: set pytorch_state to present to have the vendor's installed, or "
                "pytorch_python to the Python that has it."
            )
        if not found.plugin:
            raise Refusal(
                f"The torch {found.torch} of {python} is without {PLUGIN}, so it cannot use the cards (an upstream "
                "torch may have been installed over the vendor's): install the vendor's again."
            )

    def must_import(self, python: str, user: str) -> None:
        """Refuse a user who cannot import torch with the plugin for the cards."""
        account = account_of(user)
        sentence = closed_sentence(python, account)
        if sentence:
            raise Refusal(sentence)
        argv = [python, "-c", IMPORT]
        if account.pw_uid != os.geteuid():
            ids = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
            argv = ["setpriv", *ids, "--", *argv]
        with tempfile.TemporaryDirectory(prefix="gaudi3-scale-") as place:
            # The plugin writes its log where it is told to, and fails where it may not.
            os.chown(place, account.pw_uid, account.pw_gid)
            rc, _out, err = self._run(argv, environ_update={"HOME": place, "HABANA_LOGS": place}, cwd="/")
        if rc != 0:
            raise Refusal(
                f"User {account.pw_name} cannot import torch with the vendor's plugin by {python}: {last(err, rc)}"
            )

    def finish(self, record: Mapping[str, Any], found: Python) -> None:
        """Record that the installation is complete, once every file is on the disk."""
        sync_tree(self.folder)
        # What install.sh itself changed after pip had written it.
        unlike = {name: sorted(files) for name, files in torn(found.folders).items()}
        self.write_record({**record, "unlike": unlike})

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Change what is known of an installation that is complete."""
        write(os.path.join(self.folder, RECORD), record)

    def keep_digest(self, path: str, digest: str) -> None:
        """Remember the tarball's digest, for the next time that it is installed."""
        write(os.path.join(self.root, DIGESTS), {**self.digests(), path: digest})

    def use(self) -> None:
        """Point the link to this release, at once."""
        draft = f"{self.link}.new"
        if os.path.lexists(draft):
            os.unlink(draft)
        os.symlink(os.path.basename(self.folder), draft)
        os.replace(draft, self.link)
        sync_folder(self.root)

    def run_or_fail(
        self, argv: list[str], trouble: str, environ: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None
    ) -> str:
        """Run a command that has to succeed; returns what it printed."""
        return self.check(self._run(argv, environ_update=dict(environ or {}), cwd=cwd), trouble)

    @staticmethod
    def check(result: tuple[int, str, str], trouble: str) -> str:
        """Return what a command printed; Refusal where it failed."""
        rc, out, err = result
        if rc != 0:
            raise Refusal(f"{trouble} on this node: {last(err or out, rc)}")
        return out


def last(text: str, rc: int) -> str:
    """The last line of what a command said."""
    return (text.strip().splitlines() or [f"exit status {rc}"])[-1].strip().rstrip(".")


def read(path: str) -> dict[str, Any]:
    """An object from a JSON file; an empty one where there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write(path: str, value: Mapping[str, Any]) -> None:
    """Write a JSON file, readable by all."""
    write_file(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def keep(stream: IO[bytes], path: str) -> str:
    """Write a download to a file; return its SHA-256."""
    digest = hashlib.sha256()
    with open(path, "wb") as target:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
            target.write(block)
    return digest.hexdigest()


def unpack(packed: str, folder: str) -> None:
    """Unpack a tarball, of which nothing may land outside of the folder."""
    try:
        with tarfile.open(packed) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(folder, filter="data")
                return
            # A Python without this filter: what it would look at is refused.
            for member in archive:
                inside = os.path.normpath(os.path.join(folder, member.name) + os.sep).startswith(folder)
                if not inside or not (member.isfile() or member.isdir()):
                    raise Refusal(f"The tarball has {member.name}, which is no plain file or folder inside of it.")
                archive.extract(member, folder)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Refusal(f"The tarball cannot be unpacked: {error}.") from error


def account_of(user: str) -> pwd.struct_passwd:
    """A user's account; nobody's, who may read the least, where the user does not exist yet."""
    try:
        return pwd.getpwnam(user)
    except KeyError:
        return pwd.getpwnam("nobody")


def closed_sentence(path: str, account: pwd.struct_passwd) -> str:
    """What is wrong with a path where a user cannot enter or run it; empty where nothing is."""
    closed = first_closed(path, *numbers_of(account.pw_name), last=0o1)
    if closed is None:
        return ""
    return (
        f"User {account.pw_name} may not enter {closed}, so a job cannot use {path}: open it (chmod o+x), or choose "
        "another place."
    )
