"""Finding terraform and its providers on this machine, and running it: always with a time limit."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

REGISTRY = "registry.terraform.io"
#: Not looked into for a mirror: the kernel's and other machines' trees.
ELSEWHERE = {"proc", "sys", "dev", "run", "net", "mnt", "media", "lost+found"}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0h3yqQWfS9NSQfzBf8Ue0qS2hP4b8nA4V1Zb2c3d4e tests@example"


def answer(command: list[str], environment: dict[str, str], code: int, folder: Path | None = None) -> str:
    """What a command says in a folder until it ends with this code."""
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
    assert result.returncode == code, result.stdout
    return result.stdout


@functools.cache
def mirrors(start: str = "/", depth: int = 3) -> list[Path]:
    """Folders on this machine that hold a folder registry.terraform.io, as a provider mirror does."""
    found: list[Path] = []

    def look(folder: str, left: int) -> None:
        try:
            entries = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        if any(entry.name == REGISTRY for entry in entries):
            found.append(Path(folder))
            return
        for entry in entries if left else []:
            if not (folder == "/" and entry.name in ELSEWHERE):
                look(entry.path, left - 1)

    look(start, depth)
    look(str(Path.home()), depth + 1)
    return found


def mirror_of(provider: str) -> Path | None:
    """The mirror that has a provider, given as hashicorp/aws."""
    return next((folder for folder in mirrors() if (folder / REGISTRY / provider).is_dir()), None)


def clean_environment() -> dict[str, str]:
    """The environment without a reader's own settings of Terraform and AWS."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TF_VAR_", "TF_CLI_ARGS", "AWS_"))}
    config = clean.get("TF_CLI_CONFIG_FILE")
    if config and not Path(config).is_file():
        del clean["TF_CLI_CONFIG_FILE"]  # It would only be warned about, at each call.
    # Reading the schema of a provider is most of what a call costs; without garbage collection, a quarter less.
    return {**clean, "CHECKPOINT_DISABLE": "1", "GOGC": "off", "GOMEMLIMIT": "1GiB"}


def user_environment(account: dict[str, str]) -> dict[str, str]:
    """The environment of somebody who calls terraform by other means than ``Project``, on an account."""
    mirror = mirror_of("hashicorp/aws")
    # Without a mirror terraform fetches the provider.
    plugins = {"TF_CLI_ARGS_init": f"-plugin-dir={mirror}"} if mirror else {}
    return {**clean_environment(), **plugins, **account, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "300"}


@dataclass
class Done:
    """What a call came to."""

    code: int
    output: str
    seconds: float

    @property
    def errors(self) -> list[str]:
        """Each error's own words, in one line, without where it is and what values were in play."""
        found = []
        for text in re.split(r"^Error: ", self.output, flags=re.MULTILINE)[1:]:
            body = re.sub(r"^\s+(on |\d+:|[├│]).*$", "", text, flags=re.MULTILINE)
            body = re.sub(r"^This was checked by the validation rule at\s+\S+?\.$", "", body, flags=re.MULTILINE)
            paragraphs = [" ".join(each.split()) for each in body.split("\n\n") if each.strip()]
            found.append(" ".join(paragraphs[1:2]) or paragraphs[0])
        return found


@dataclass
class Call:
    """A call that runs."""

    process: subprocess.Popen[bytes]
    output: IO[str]
    began: float

    def words(self) -> str:
        """What it said so far."""
        self.output.seek(0)
        return self.output.read()

    def end(self) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@dataclass
class Project:
    """A folder with a configuration, a state of its own, and the environment to run in."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    #: Says why a running call should be given up, or nothing.
    watch: Callable[[], str | None] = lambda: None
    name: str = "terraform"

    @property
    def state(self) -> Path:
        """Where the local backend keeps it."""
        return self.folder / f"{self.name}.tfstate"

    def _environment(self) -> dict[str, str]:
        own = {
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "TF_DATA_DIR": str(self.folder / f".{self.name}"),
            "TF_VAR_ssh_public_key": KEY,
        }
        return {**clean_environment(), **own, **self.environment}

    def start(self, *arguments: str) -> Call:
        """Start a call. Its words go to a file: a pipe that nobody empties yet would stop it."""
        output = tempfile.TemporaryFile("w+")  # noqa: SIM115  (read when the call has ended)
        process = subprocess.Popen(
            ["terraform", *arguments],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        return Call(process, output, time.monotonic())

    def finish(self, call: Call, limit: float) -> Done:
        """Wait for a call, no longer than ``limit`` seconds after its start."""
        while True:
            try:
                call.process.wait(timeout=1)
                return Done(call.process.returncode, call.words(), time.monotonic() - call.began)
            except subprocess.TimeoutExpired:
                late = time.monotonic() - call.began > limit
                reason = f"no end within {limit:.0f} seconds" if late else self.watch()
                if reason:
                    call.end()
                    raise AssertionError(f"{call.process.args!r}: {reason}\n{call.words()[-3000:]}") from None

    def run(self, *arguments: str, limit: float = 120) -> Done:
        """Run a call."""
        return self.finish(self.start(*arguments), limit)

    def init(self, provider: str | None = None) -> None:
        """Initialise with the provider from a mirror on this machine, or as Terraform finds it by itself."""
        arguments = ["init", "-input=false", "-no-color"]
        mirror = mirror_of(provider) if provider else None
        if mirror:
            arguments.append(f"-plugin-dir={mirror}")
        done = self.run(*arguments, limit=300)
        assert done.code == 0, (
            f"terraform is here and cannot be initialised in {self.folder}, so what it proves goes unproved: put "
            f"{provider or 'nothing'} into a mirror that Terraform finds (a folder with {REGISTRY} in it, a "
            f"filesystem_mirror in ~/.terraformrc), or let it reach the registry.\n{done.output[-2000:]}"
        )

    def change(self, command: str, *arguments: str, limit: float = 240) -> Done:
        """plan, apply or destroy on this project's own state."""
        asked = [] if command == "plan" else ["-auto-approve"]
        return self.run(command, "-input=false", "-no-color", f"-state={self.state}", *asked, *arguments, limit=limit)

    def outputs(self) -> dict[str, Any]:
        """The outputs' values."""
        read = json.loads(self.state.read_text())["outputs"]
        return {name: output["value"] for name, output in read.items()}


def copied(tree: Path, target: Path) -> Path:
    """A copy of terraform/ to run in: nothing that Terraform writes gets into the checkout."""
    ignored = shutil.ignore_patterns(".terraform", "*.tfstate*", ".terraform.lock.hcl", "__pycache__")
    shutil.copytree(tree, target, ignore=ignored)
    return target
