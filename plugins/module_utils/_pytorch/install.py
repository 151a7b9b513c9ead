# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The vendor's PyTorch at work: what is in the way of it, and its installation."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from .._files import make_folder, write_file
from .._host.reach import Answer, Ask, follow
from .._installed import alone
from .._known_bad import refuse_known_bad
from .._mirror import LOCK, sealed_at, tarball_digest
from .._pip import Pin, index_environment
from .._refusal import Refusal
from . import pins as pytorch_pins
from .env import GRAPH_PATH, ROOM, ROOM_BESIDE, Python, PytorchEnv, account_of, closed_sentence, keep
from .release import Tarball, folder_of, minor, tarball, too_old

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def ask_with(timeout: int, body: bool = False) -> Ask:
    """What asks for an address, following it nowhere; with ``body`` it reads what is sent."""

    def ask(url: str) -> Answer:
        from urllib.error import HTTPError

        from ansible.module_utils.urls import open_url

        try:
            with open_url(url, timeout=timeout, follow_redirects="none") as found:
                headers = {key.lower(): value for key, value in found.headers.items()}
                return Answer(found.status, headers, found.read() if body else b"")
        except HTTPError as error:
            return Answer(error.code, {key.lower(): value for key, value in error.headers.items()})

    return ask


@dataclass(frozen=True)
class State:
    """What a node has of PyTorch."""

    record: dict[str, Any]
    found: Optional[Python]
    #: Whether torch, plugin and all files are as they were installed.
    whole: bool
    missing: tuple[Pin, ...]


class Installer:
    """One run of module gaudi_pytorch on a node."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params = module.params
        self.env = PytorchEnv(module.run_command, self.params["root"], self.params["release"])
        self.pins = pytorch_pins.pins(self.params["requirements"])
        self.pip_environ = index_environment(
            self.params["index_url"], self.params["index_plain_http"], "pytorch_pip_index_url"
        )
        self.must_be_the_drivers()
        self.sha256 = self.params["sha256"].lower()
        if self.sha256 and not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise Refusal(
                f"pytorch_sha256 is '{self.params['sha256']}': give the 64 hexadecimal digits of the tarball's SHA-256."
            )

    def must_be_the_drivers(self) -> None:
        """Refuse PyTorch of another release than the driver, with which it does not work."""
        release, driver = self.params["release"], self.params["driver_release"]
        if driver not in (None, "", release):
            raise Refusal(
                f"pytorch_release is {release}, but the driver's release is {driver}, and both have to be the same: "
                f"leave pytorch_release out, or set synapseai_release to {release}."
            )

    def preinstalled(self) -> dict[str, Any]:
        """Judge the Python that has PyTorch; nothing is changed."""
        python = self.params["executable"]
        found = self.env.probe(python)
        if found is None:
            raise Refusal(
                f"pytorch_state is preinstalled, but {python} is not on this node: set pytorch_python to the Python "
                "that has PyTorch."
            )
        if too_old(found.version):
            raise Refusal(
                f"{python} is Python {found.version}, too old for the trainer: set pytorch_python to a newer one that "
                "has PyTorch."
            )
        refuse_known_bad(python, found.distributions)
        self.env.must_have_plugin(python, found)
        self.must_be_open(python)
        if not self.module.check_mode:
            self.env.must_import(python, self.params["user"])
        none = {"changed": False, "tarball": "", "sha256": "", "done": []}
        return {"python": python, "torch": found.torch, "plugin": found.plugin, **none}

    def must_be_open(self, path: str) -> None:
        """Refuse a path that the user of the jobs cannot reach."""
        account = account_of(self.params["user"])
        sentence = closed_sentence(path, account)
        if sentence:
            raise Refusal(sentence)

    def base(self) -> Python:
        """The Python that the environment is made with."""
        name = self.params["executable"]
        found = self.env.probe(name)
        later = self.params["python_later"] and self.module.check_mode
        if found is None:
            version = re.search(r"python(\d+\.\d+)$", name)
            if not later or version is None:
                raise self.absent()
            return Python(version.group(1))
        if not found.venv and not later:
            raise Refusal(
                f"{name} cannot make virtual environments, as its module venv or ensurepip is missing: add the "
                "distribution's package of it to pytorch_packages."
            )
        return found

    def absent(self) -> Refusal:
        """The Python that the environment is to be made with is not there."""
        return Refusal(
            f"pytorch_python is {self.params['executable']}, which is not on this node: install it, with "
            "pytorch_packages for instance, or set pytorch_python to one that is."
        )

    def must_be_of(self, found: Python) -> None:
        """Refuse an existing environment that was made with another Python than the one named."""
        name = self.params["executable"]
        if not os.access(name, os.X_OK):
            raise self.absent()
        version = re.search(r"python(\d+\.\d+)$", os.path.realpath(name))
        if version is not None and version.group(1) != minor(found.version):
            raise Refusal(
                f"{self.env.folder} was made with Python {minor(found.version)}, but pytorch_python is {name}, Python "
                f"{version.group(1)}: set pytorch_python to a Python {minor(found.version)}, or remove "
                f"{self.env.folder} to have it installed again with {name}."
            )

    def look(self) -> State:
        """What the node has, and what is missing."""
        env = self.env
        record = env.record()
        try:
            found = env.probe(env.interpreter) if record else None
        except Refusal:
            found = None  # an environment whose own Python fails is made anew
        if found is not None:
            refuse_known_bad(env.interpreter, found.distributions)
        ours = record.get("requirements", [])
        torn = env.torn(found) if found is not None and self.same(record, found) else None
        if found is None or torn is None or set(torn) - set(ours):
            return State(record, found, False, tuple(self.pins.values()))
        have = {name: version for name, version in found.distributions.items() if name not in torn}
        return State(record, found, True, tuple(pytorch_pins.wanted(self.pins, have, ours)))

    def done(self, state: State) -> list[str]:
        """What is to be done."""
        parts = {"pytorch": not state.whole, "requirements": bool(state.missing), "link": not self.env.linked()}
        return [name for name, lacks in parts.items() if lacks]

    def present(self) -> dict[str, Any]:
        """Install what is missing."""
        env = self.env
        state = self.look()
        if state.whole and state.found is not None:
            self.must_be_of(state.found)
        if state.whole and self.sha256 and state.record["sha256"] != self.sha256:
            raise Refusal(
                f"{env.folder} was installed of a tarball with SHA-256 {state.record['sha256']}, not {self.sha256} as "
                f"pytorch_sha256 says: find out which is right, and remove {env.folder} to have it installed again."
            )
        done = self.done(state)
        before = f"{env.in_use()}\n{shown(state.found)}"
        wanted: Optional[Tarball] = None
        if done:
            self.must_be_open(self.params["root"])
            wanted = None if state.whole else self.obtainable()
            if state.missing:
                self.reach_index()
        after = f"{os.path.basename(env.folder)}\n{wanted.name if wanted else shown(state.found)}"
        lines = [after, *map(str, state.missing)]
        if done and not self.module.check_mode:
            with alone(self.params["root"]):
                state = self.act(wanted)
        found, record = state.found if state.whole else None, state.record if state.whole else {}
        return {
            "changed": bool(done),
            "python": os.path.join(env.link, "bin", "python"),
            "torch": found.torch if found else "",
            "plugin": found.plugin if found else "",
            "tarball": record.get("tarball", ""),
            "sha256": record.get("sha256", ""),
            "done": done,
            "diff": {
                "before": f"{before}\n" if done else "",
                "after": "".join(f"{line}\n" for line in lines) if done else "",
            },
        }

    def act(self, tarball: Optional[Tarball]) -> State:
        """Do what is to be done, as no other run does any more; returns what the node has then."""
        env = self.env
        state = self.look()  # another run may have come first
        record = state.record
        if not state.whole:
            record = self.install(tarball or self.obtainable())
        if state.missing:
            record = self.add(record)
        env.must_import(env.interpreter, self.params["user"])
        env.use()
        return State(record, env.made(), True, ())

    @staticmethod
    def same(record: dict[str, Any], found: Python) -> bool:
        """Whether torch and plugin are those that were installed."""
        return bool(found.plugin) and (record.get("torch"), record.get("plugin")) == (found.torch, found.plugin)

    def obtainable(self) -> Tarball:
        """The tarball; Refusal where it is not for this node, is not available, or finds no space."""
        params = self.params
        system = params["system"] or folder_of(params["distribution"])
        name = params["distribution"] or system
        found = tarball(params["release"], system, name, self.base().version, params["version"], params["pythons"])
        advice = f"see whether {found.system} has {found.name} there, or set pytorch_repository_url to a mirror"
        answer = follow(ask_with(params["timeout"]), self.url(found), advice)
        needed, room = ROOM * answer.size + ROOM_BESIDE, self.env.room()
        if room < needed:
            raise Refusal(
                f"{params['root']} has {room / 2**30:.1f} GiB of free space, PyTorch needs about {needed / 2**30:.1f} "
                "GiB: make room, or set pytorch_root to a folder with more."
            )
        return found

    def url(self, found: Tarball) -> str:
        return f"{self.params['repository_url'].rstrip('/')}/{found.path}"

    def reach_index(self) -> None:
        """Refuse a package index that does not answer, or whose files are on a host that does not."""
        texts = []
        for name in map(os.path.expanduser, pytorch_pins.PIP_FILES):
            try:
                with open(name, encoding="utf-8") as stream:
                    texts.append(stream.read())
            except OSError:
                continue
        index = pytorch_pins.index_url(self.params["index_url"], os.environ, texts)
        advice = "set pytorch_pip_index_url to an index that has it"
        name, version = next((pin.name, pin.version) for pin in self.pins.values())
        # Not by its address, which Ansible blots out where it may hold a password.
        what = f"{name} {version} of the package index"
        page = f"{index}/{name}/"
        answer = follow(ask_with(self.params["timeout"], body=True), page, advice, what)
        address = pytorch_pins.file_of(page, answer.body.decode("utf-8", "replace"), version)
        if not address:
            raise Refusal(f"The package index has no {name} {version}: {advice}.")
        follow(ask_with(self.params["timeout"]), address, advice, what)

    def install(self, wanted: Tarball) -> dict[str, Any]:
        """Download, check and install the tarball; return the environment's record."""
        from ansible.module_utils.urls import open_url

        env, params = self.env, self.params
        make_folder(params["root"])
        sealed = self.sealed(wanted)
        known = self.sha256 or sealed or env.digests().get(wanted.path, "")
        handle, packed = tempfile.mkstemp(dir=params["root"], prefix=".torch-", suffix=".tgz")
        os.close(handle)
        try:
            try:
                with open_url(self.url(wanted), timeout=params["timeout"]) as stream:
                    digest = keep(stream, packed)
            except (OSError, ValueError) as error:
                raise Refusal(f"{self.url(wanted)} cannot be downloaded: {error}.") from error
            if known and digest != known:
                first = f"{LOCK} of the mirror" if sealed else "its first installation on this node"
                says = "pytorch_sha256" if self.sha256 else first
                raise Refusal(
                    f"{self.url(wanted)} has SHA-256 {digest}, not {known} as {says} says: find out which is right "
                    "before you go on."
                )
            env.make(params["executable"])
            env.install(packed, wanted, params["kind"], self.pip_environ)
        finally:
            os.unlink(packed)
        found = env.made()
        refuse_known_bad(env.interpreter, found.distributions)
        env.must_have_plugin(env.interpreter, found)
        write_file(os.path.join(found.purelib, GRAPH_PATH[0]), GRAPH_PATH[1])
        if not known:
            self.module.warn(
                f"{wanted.name} is trusted on first use: its SHA-256 is {digest}; set pytorch_sha256 to it, once you "
                "have compared it with another source, so that every node gets the same."
            )
        record = {
            "release": str(wanted.release),
            "tarball": wanted.path,
            "sha256": digest,
            "kind": params["kind"],
            "torch": found.torch,
            "plugin": found.plugin,
            "requirements": [],
        }
        env.keep_digest(wanted.path, digest)
        env.finish(record, found)
        return env.record()

    def sealed(self, wanted: Tarball) -> str:
        """SHA-256 of the tarball as the mirror's lock has it; empty where it is from no mirror, or named otherwise."""
        where, params = self.params["lock_url"].rpartition("/")[0], self.params
        if self.sha256 or not where:
            return ""
        return tarball_digest(sealed_at(where, params["lock_sha256"], params["timeout"]), where, wanted.path)

    def add(self, record: dict[str, Any]) -> dict[str, Any]:
        """Install what is missing of the list; return the environment's record."""
        env = self.env
        before = env.made()
        torn = env.torn(before)
        have = {name: version for name, version in before.distributions.items() if name not in torn}
        missing = pytorch_pins.wanted(self.pins, have, record["requirements"])
        # Written before pip runs: what it installs before it fails is the list's, too.
        names = sorted({*record["requirements"], *(pin.name for pin in missing)})
        record = {**record, "requirements": names}
        env.write_record(record)
        if missing:
            env.add(missing, self.pip_environ, before)
        after = env.made()
        if not self.same(record, after):
            raise Refusal(
                f"The packages of pytorch_requirements replaced torch {before.torch} by {after.torch or 'nothing'}: "
                "take out the one that has it."
            )
        for line in env.complaints(names):
            self.module.warn(f"Beside the vendor's PyTorch: {line}")
        return record


def shown(found: Optional[Python]) -> str:
    """Torch and plugin, in a line."""
    if found is None or not found.torch:
        return "torch absent"
    return f"torch {found.torch}, {found.plugin or 'without the plugin for the cards'}"
