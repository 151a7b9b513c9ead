"""The machines on which the blocks of pages are run: a folder, its environment, and what stands behind it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .markdown import ROOT
from .plan import Walk

CLUSTER = "walks"
LOCK = Path(os.environ.get("GAUDI3_NODES_LOCK", "/tmp/nodes.lock"))
"""Held while simulated nodes are up: there is one network of them on a machine."""
DISTRIBUTIONS = ("trainer", "simulator", "deploy", "doctor", "migration", "benchmark-tool", "watch")
OF_PIP = ("PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE")
KEPT = ("PATH", "LANG", "USER", "LOGNAME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", *OF_PIP)
"""Variables of this machine that its reader's machine has too."""


@dataclass
class Place:
    """Where the blocks of one page are run."""

    folder: Path
    home: Path
    environment: dict[str, str] = field(default_factory=dict)


def copy_checkout(target: Path, fresh: bool) -> None:
    """The checkout as it is, changed files and new ones that git does not ignore included.

    Its environment and what was downloaded for it lie there too, unless it is ``fresh``. No file is newer than these,
    so that make does not make them again.
    """
    made = ROOT / ".venv/.controller"
    newest = made.stat().st_mtime - 1 if made.exists() else None
    subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", str(ROOT), str(target)], check=True)
    subprocess.run(["git", "read-tree", "HEAD"], cwd=target, check=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, target / name
        if source.is_symlink() or source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
            if newest and not fresh and copy.stat(follow_symlinks=False).st_mtime > newest:
                os.utime(copy, (newest, newest), follow_symlinks=False)
    for name in () if fresh else (".venv", ".cache"):
        # A walk within a walk finds links, which git does not ignore as it does the folders: they are copied by now.
        if (ROOT / name).exists() and not (target / name).is_symlink():
            (target / name).symlink_to((ROOT / name).resolve())


def environment_of(folder: Path, home: Path, fresh: bool) -> dict[str, str]:
    """That of a reader who has activated the checkout's environment, or of one who has none yet."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = [str(Path(sys.executable).parent), str(ROOT / ".venv/bin"), str((ROOT / ".venv/bin").resolve())]
    others = [each for each in kept.get("PATH", "").split(":") if each not in own]
    tools = [own[0], *others, str(ROOT / ".cache/tools/usr/bin")]
    sources = {"PYTHONPATH": ":".join(str(folder / each / "src") for each in DISTRIBUTIONS)}
    return {
        **kept,
        "PATH": ":".join(others if fresh else tools),
        **({} if fresh else sources),
        "HOME": str(home),
        "WALKS_CHECKOUT": str(ROOT),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "160",
        "OMP_NUM_THREADS": "1",
        # Nothing but a cluster's walk may touch what simulated nodes are made of.
        "GAUDI3_SIMULATOR_HOME": str(home / "simulator"),
    }


@contextmanager
def place(walk: Walk, at: Path) -> Iterator[Place]:
    """The machine of a walk, its files laid out, in the empty folder ``at``."""
    home, folder = at / "home", at / "scale"
    home.mkdir(parents=True)
    copy_checkout(folder, walk.is_fresh)
    with ExitStack() as stack:
        made = Place(folder, home, environment_of(folder, home, walk.is_fresh))
        if walk.kind in ("aws", "ibm"):
            made.environment |= stack.enter_context(_cloud(walk.kind, at))
            made.environment["PATH"] = f"{_machines(at / 'bin')}:{made.environment['PATH']}"
            made.environment["WALKS_PLAYBOOK"] = _playbook()
        elif walk.kind == "cluster":
            made.environment |= _cluster(folder, walk.has_inventory)
        elif walk.kind == "archive":
            _archive(made, at)
        elif walk.kind == "trainer":
            _lay_out_job(made.folder)
        if walk.has_cards:
            made.environment["PYTHONPATH"] += f":{ROOT / '.cache/hpu'}"
        for name, source in walk.files.items():
            _copy(ROOT / source, made.folder / name)
        made.environment |= {name: os.path.expandvars(value) for name, value in walk.variables.items()}
        yield made


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _lay_out_job(folder: Path) -> None:
    """A tiny job, as the pages about training take one for granted."""
    for source in sorted((Path(__file__).parent / "job").iterdir()):
        _copy(source, folder / source.name)


@contextmanager
def _cloud(kind: str, at: Path) -> Iterator[dict[str, str]]:
    """The environment of a reader with an account at a cloud, which a stand-in plays."""
    from tests.terraform.support.account import moto_account
    from tests.terraform.support.ibm_account import ibm_account
    from tests.terraform.support.tool import user_environment

    account = at / "account"
    account.mkdir()
    key = at / "home/.ssh/id_ed25519"
    key.parent.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with ExitStack() as stack:
        played = (
            stack.enter_context(ibm_account(account))
            if kind == "ibm"
            else stack.enter_context(moto_account(account, "us-east-1"))
        )
        whole = user_environment(played.environment)
        yield {name: value for name, value in whole.items() if os.environ.get(name) != value}


def _machines(folder: Path) -> Path:
    """Programs that answer in the place of machines, as a stand-in for a cloud makes none."""
    folder.mkdir()
    # What a job has written is fetched as an archive, and this job has written an empty folder.
    (folder / "written/job").mkdir(parents=True)
    fetched = f'case "$*" in *" tar "*) exec tar -C {folder / "written"} -cf - job;; esac'
    programs = {"ssh": fetched, "ansible-playbook": f'exec {_playbook()} --list-hosts "$@"'}
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return folder


def _playbook() -> str:
    """The true ansible-playbook."""
    found = shutil.which("ansible-playbook")
    assert found, "ansible-playbook is not on PATH"
    return found


def _archive(made: Place, at: Path) -> None:
    """A folder with the built collection, its signature and the keyring to verify that, and no checkout around."""
    made.home.joinpath(".gnupg").mkdir(mode=0o700)
    keyring = made.home / "walk.gpg"
    commands = """
        gpg --batch --quiet --passphrase '' --quick-generate-key walk default default never
        make build sign KEY=walk
        gpg --armor --export walk > key
        gpg --batch --quiet --no-default-keyring --keyring "$0" --import key
    """
    done = subprocess.run(
        ["bash", "-ec", commands, str(keyring)],
        cwd=made.folder, env=made.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    checkout, made.folder = made.folder, at / "work"
    made.folder.mkdir()
    for built in checkout.glob("gaudi3-scale-*.tar.gz*"):
        shutil.copy2(built, made.folder)


def _cluster(folder: Path, with_inventory: bool) -> dict[str, str]:
    """Variables that lead to the cluster which `cluster` has brought up; its inventory in the folder `mine`."""
    if with_inventory:
        shutil.copytree(ROOT / "inventories/simulated", folder / "mine")
        shutil.copy2(ROOT / "examples/inventory/ansible.cfg", folder / "mine/ansible.cfg")
    home = (ROOT / ".cache/simulator").resolve()
    known = json.loads((home / "clusters" / CLUSTER / "cluster.json").read_text())
    nodes = [*known["nodes"], known["monitor"]]
    return {
        # A node's address, such as GAUDI_1.
        **{node["name"].upper().replace("-", "_"): node["address"] for node in nodes},
        "GAUDI3_SIMULATOR_HOME": str(home),
        "GAUDI3_SIMULATOR_CLUSTER": CLUSTER,
        "CLUSTER": CLUSTER,
    }


@contextmanager
def cluster(log: Path) -> Iterator[None]:
    """Two simulated nodes and a monitoring host, on which site.yml has run, for all pages that need nodes."""
    environment = {
        **os.environ,
        "GAUDI3_SIMULATOR_HOME": str((ROOT / ".cache/simulator").resolve()),
        "GAUDI3_SIMULATOR_CLUSTER": CLUSTER,
    }

    def call(*command: str, check: bool = True) -> None:
        with log.open("a") as out:
            code = subprocess.run(command, cwd=ROOT, env=environment, stdout=out, stderr=out, check=False).returncode
        assert not (check and code), f"{' '.join(command)} ended with {code}:\n{log.read_text()[-3000:]}"

    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        call("gaudi3-simulator", "down", "--name", CLUSTER, check=False)
        try:
            call("gaudi3-simulator", "up", "--name", CLUSTER, "--nodes", "2")
            call("ansible-playbook", "site.yml")
            yield
        finally:
            call("gaudi3-simulator", "down", "--name", CLUSTER, check=False)
