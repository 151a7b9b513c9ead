# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The trainer's place on a node: a virtual environment, and each version of the trainer in a folder of its own.

The environment finds the current version through one .pth file, which is replaced at once. A job that runs
keeps the version it was started with, even while a newer one is being installed.
"""

from __future__ import annotations

import glob
import json
import os
import pwd
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._cards.file_access import first_closed, numbers_of
from .._files import make_folder, sync_tree, write_file
from .._installed import forget, installing, torn, unfinished
from .._known_bad import PACKAGES as KNOWN_BAD_PACKAGES
from .._known_bad import refuse_known_bad
from .._pip import Pin, other_file
from .._pip import install as install_pins
from .._refusal import Refusal
from .._wheels import Requirement, described, is_intact, normal, python_admitted, read_wheel, unmet, unpacked_scripts
from .pins import complained_of, names_of

Run = Callable[..., tuple[int, str, str]]

#: Asks an interpreter about itself; a package is looked up, not imported, as torch alone takes seconds.
PROBE = """
import importlib.metadata, importlib.util, json, platform, sys, sysconfig
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
paths = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
print(json.dumps({"version": platform.python_version(), "purelib": sysconfig.get_path("purelib"),
                  "own_paths": paths if sys.prefix != sys.base_prefix else [],
                  "pip": importlib.util.find_spec("pip") is not None, "distributions": found}))
"""


@dataclass(frozen=True)
class Release:
    """The version of the trainer that is wanted."""

    sha256: str
    requires_python: str
    requirements: tuple[str, ...]


class TrainerEnv:
    """The environment below one folder of the node."""

    def __init__(self, run: Run, root: str, python: str) -> None:
        self._run = run
        self._root = root
        self._python = python
        self.venv = os.path.join(root, "venv")
        self.interpreter = os.path.join(self.venv, "bin", "python")
        self._made_with = os.path.join(self.venv, "gaudi3-scale-python")
        #: Where the list for pip is put; None for the system's folder of temporary files.
        self._list_folder: Optional[str] = None
        #: What the environment is made with, as it is recorded in it.
        self._maker = python

    def has_venv(self) -> bool:
        """Whether the environment is finished, made with the Python that is wanted, and its interpreter still is."""
        return self._recorded_maker() == self._maker and os.access(self.interpreter, os.X_OK)

    def _recorded_maker(self) -> str:
        try:
            with open(self._made_with, encoding="utf-8") as handle:
                return handle.read().strip()
        except OSError:
            return ""

    def probed(self, release: Release) -> list[str]:
        """Packages to ask an interpreter for."""
        required = [item.name for item in map(Requirement.parse, release.requirements) if item is not None]
        return list(dict.fromkeys([*required, *KNOWN_BAD_PACKAGES]))

    def has_python(self) -> bool:
        """Whether there is an interpreter to ask, in the environment or to make it with."""
        return self.has_venv() or os.access(self._python, os.X_OK)

    def probe(self, release: Release) -> dict[str, Any]:
        """Ask the environment's interpreter, or the one it will be made with, what it has.

        Packages of the environment that lost files count as missing.
        """
        answer = self._asked(self.interpreter if self.has_venv() else self._python, release)
        lost = self.lost() if self.has_venv() else set()
        answer["distributions"] = {
            name: version for name, version in answer["distributions"].items() if normal(name) not in lost
        }
        return answer

    def _asked(self, python: str, release: Release) -> dict[str, Any]:
        try:
            rc, out, err = self._run([python, "-c", PROBE, *self.probed(release)], handle_exceptions=False)
            answer = json.loads(out) if rc == 0 else None
        except OSError as error:
            err, answer = str(error), None
        except ValueError:
            err, answer = "", None
        if not isinstance(answer, dict):
            reason = (err.strip().splitlines() or ["it gave no answer"])[-1]
            raise Refusal(f"{python} does not run on this node: {reason}; set trainer_python to a Python that does.")
        refuse_known_bad(self.named(python), answer["distributions"])
        return answer

    def named(self, python: str) -> str:
        """An interpreter, for use inside a sentence."""
        return python

    def lost(self) -> set[str]:
        """Packages of the environment itself whose files are not as they were installed."""
        return set(torn(self._packages(), unfinished(self.venv)))

    def _packages(self) -> list[str]:
        # Found by their names, as the interpreter of an environment for a container runs in its image alone.
        return glob.glob(os.path.join(glob.escape(self.venv), "lib*", "python3*", "site-packages"))

    def verify(self, answer: Mapping[str, Any], release: Release, from_index: bool) -> list[str]:
        """Check what the trainer needs; return the requirements to be installed from an index."""
        if release.requires_python and not python_admitted(release.requires_python, answer["version"]):
            raise Refusal(
                f"The trainer needs Python {release.requires_python}, but {self._python} is {answer['version']}: set "
                "trainer_python to another one."
            )
        missing = unmet(release.requirements, answer["distributions"])
        torch = [pair for pair in missing if pair[0].name == "torch"]
        if torch:
            raise Refusal(
                f"The trainer needs {described(torch)} for {self._python}, and PyTorch comes with role pytorch or the "
                "node's image, never from an index: run the phase pytorch, or set trainer_python to the Python that "
                "has it."
            )
        if missing and not from_index:
            raise Refusal(
                f"The trainer needs {described(missing)} for {self._python}: install them, or set trainer_dependencies "
                "to index to have them installed from a package index."
            )
        found = [str(wanted) for wanted, _version in missing]
        lost = self.lost() if from_index and self.has_venv() else set()
        return [*found, *sorted(lost - set(names_of(found)))]

    def folder(self, release: Release) -> str:
        """Where a version of the trainer is unpacked."""
        return os.path.join(self._root, "trainer", release.sha256[:16])

    def current(self, purelib: str) -> Optional[str]:
        """The folder the environment takes the trainer from."""
        try:
            with open(self._link(purelib), encoding="utf-8") as handle:
                return handle.read().strip()
        except OSError:
            return None

    def installed(self, purelib: str, release: Release) -> bool:
        """Whether the environment has this version, complete and with its commands."""
        folder = self.folder(release)
        there = self.has_venv() and self.current(purelib) == folder and is_intact(folder)
        return there and all(self._has_script(*each) for each in unpacked_scripts(folder).items())

    def _has_script(self, name: str, target: str) -> bool:
        path = os.path.join(self.venv, "bin", name)
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                may_be_run = stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o755
                return may_be_run and stream.read() == self._script(target)
        except OSError:
            return False

    def check_reach(self, answer: Mapping[str, Any], user: str) -> None:
        """Refuse a Python that the user of the jobs cannot reach with its packages, as below a closed home."""
        for path in (self._python, *answer["own_paths"]):
            closed = first_closed(path, *numbers_of(user))
            if closed is not None:
                mode = stat.S_IMODE(os.stat(closed).st_mode)
                raise Refusal(
                    f"{user} cannot reach {path}, as {closed} (mode {mode:04o}) is closed to it: make the environment "
                    "in a folder that all may enter, such as below /opt, or set trainer_python to another Python."
                )

    def check_import(self, user: str, names: Iterable[str], setpriv: str) -> None:
        """Refuse to go on unless jobs, which run as this user, can import what they compute with.

        setpriv asks no PAM, which may refuse a session over a limit that a unit does not have.
        """
        imports = ", ".join(names)
        entry = pwd.getpwnam(user)
        identity = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]
        argv = [setpriv, *identity, "--", self.interpreter, "-I", "-c", f"import {imports}"]
        # A plugin that torch loads by itself fails without its reason.
        self._run_or_fail(
            argv, f"{user} cannot import {imports} with {self._python}", {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        )

    def make_venv(self, answer: Mapping[str, Any], release: Release) -> dict[str, Any]:
        """Make the environment and probe it; it sees the system's packages, as that is where PyTorch is."""
        argv = [self._python, "-m", "venv", "--without-pip", "--system-site-packages", self.venv]
        self._run_or_fail(argv, "The virtual environment cannot be made")
        fresh = self._asked(self.interpreter, release)
        base = os.path.join(fresh["purelib"], "gaudi3-scale-vendor.pth")
        if answer["own_paths"]:
            # Made with a Python of an environment, as the vendor's PyTorch is in, whose packages venv leaves out. As
            # folders of packages, in which .pth files count; by its name it comes after the trainer's own.
            write_file(
                base, "".join(f"import site; site.addsitedir({path!r})\n" for path in answer["own_paths"]), 0o644
            )
        elif os.path.exists(base):
            os.unlink(base)
        sync_tree(self.venv)
        write_file(self._made_with, self._maker + "\n")  # last: without it the environment is made again
        return self.probe(release)

    def install_from_index(
        self, requirements: list[str], index_environ: Mapping[str, str], pins: Mapping[str, Pin]
    ) -> None:
        """Install what is missing of a list of hashed pins, with the system's own pip, and nothing else."""
        unmet_names, found = names_of(requirements), set(self._probe_names(list(pins))) - self.lost()
        wanted = [name for name in pins if name in unmet_names or name not in found]
        done: set[str] = set()
        while wanted:
            self._add([pins[name] for name in wanted], index_environ)
            done |= set(wanted)
            # What was there before may be too old for what has come.
            _rc, out, _err = self._run([self.interpreter, "-m", "pip", "--disable-pip-version-check", "check"])
            wanted = [name for name in complained_of(out, pins) if name not in done]

    def _probe_names(self, names: list[str]) -> Iterable[str]:
        result = self._run([self.interpreter, "-c", PROBE, *names])
        self._check(result, "The environment's Python does not tell what it has")
        return list(json.loads(result[1])["distributions"])

    def _add(self, pins: list[Pin], index_environ: Mapping[str, str]) -> None:
        names = {pin.name for pin in pins}
        with installing(self.venv, names):
            forget(self._packages(), names & self.lost())
            result = install_pins(self._run, self.interpreter, pins, index_environ, self._list_folder)
            other = other_file(result[2])
            if result[0] != 0 and other:
                raise self.other_file_refusal(other)
            self._check(result, "The trainer's requirements cannot be installed")

    def other_file_refusal(self, pin: str) -> Refusal:
        """What is said where the index has another file than the list names."""
        return Refusal(
            f"The package index has another file of {pin} than the trainer's list of pinned packages names: take an "
            "index with PyPI's files, or install what is missing and set trainer_dependencies to preinstalled."
        )

    def install(self, wheel: str, purelib: str, release: Release, check: Callable[[], None] = lambda: None) -> None:
        """Unpack a wheel, see that it can be imported, check what else is wanted, and make it the current version."""
        scripts = self.unpack(wheel, release)
        folder = self.folder(release)
        for target in scripts.values():
            self._run_or_fail(
                [self.interpreter, "-c", f"import {target.partition(':')[0]}"],
                "The trainer cannot be imported",
                {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        check()  # before the version is current: where it fails, the next run comes here again
        for name, target in scripts.items():
            write_file(os.path.join(self.venv, "bin", name), self._script(target), 0o755)
        write_file(self._link(purelib), folder + "\n", 0o644)

    def unpack(self, wheel: str, release: Release) -> Mapping[str, str]:
        """Unpack a wheel into its version's folder; return its console scripts."""
        scripts = read_wheel(wheel).scripts
        for name, target in scripts.items():
            if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or not re.fullmatch(r"[\w.]+:\w+", target):
                raise Refusal(f"The wheel's script {name} = {target} cannot be installed: it is not module:function.")
        folder = self.folder(release)
        if not is_intact(folder):
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(os.path.dirname(folder))
            draft = tempfile.mkdtemp(dir=os.path.dirname(folder), prefix=".draft-")
            try:
                os.chmod(draft, 0o755)
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(draft)
                self._run_or_fail([self.interpreter, "-m", "compileall", "-q", draft], "The trainer cannot be compiled")
                sync_tree(draft)
                os.rename(draft, folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return scripts

    def _script(self, target: str) -> str:
        module, _colon, function = target.partition(":")
        return f"#!{self.interpreter}\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"

    @staticmethod
    def _link(purelib: str) -> str:
        return os.path.join(purelib, "gaudi3-scale-trainer.pth")

    def _run_or_fail(self, argv: list[str], trouble: str, environ: Optional[dict[str, str]] = None) -> None:
        self._check(self._run(argv, environ_update=environ or {}), trouble)

    @staticmethod
    def _check(result: tuple[int, str, str], trouble: str) -> None:
        rc, out, err = result
        if rc != 0:
            reason = ((err.strip() or out.strip()).splitlines() or [f"exit status {rc}"])[-1]
            raise Refusal(f"{trouble} on this node: {reason}")
