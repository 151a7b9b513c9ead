"""Run one of the proofs that `proofs.toml` lists, as `make proof-NAME` does."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_suffix(".toml")
PAGES = "proofs"
"""The folder of the pages, below the top of the repository."""


@dataclass(frozen=True)
class Command:
    """One call of pytest, below the top of the repository."""

    words: Sequence[str]
    proof: str
    folder: str = "."
    first_on_path: str = ""

    def shown(self) -> str:
        """As a person would type it at the top of the repository."""
        words = [f"GAUDI3_PROOF={self.proof}"]
        words += [f'PATH="$PWD/{self.first_on_path}:$PATH"'] if self.first_on_path else []
        before = f"cd {self.folder} && " if self.folder != "." else ""
        return f"{before}{' '.join(words)} {shlex.join(self.words)}"

    def run(self) -> int:
        """Its exit code. A Ctrl-C reaches pytest too, which then ends in order and is waited for."""
        environment = os.environ | {"GAUDI3_PROOF": self.proof}
        if self.first_on_path:
            environment["PATH"] = f"{ROOT / self.first_on_path}:{environment['PATH']}"
        # Not subprocess.run, which kills its child soon after a Ctrl-C.
        with subprocess.Popen(self.words, cwd=ROOT / self.folder, env=environment) as process:
            while True:
                try:
                    return process.wait()
                except KeyboardInterrupt:
                    continue


@dataclass(frozen=True)
class Entry:
    """One proof of the list, the keys of which `proofs.toml` explains."""

    name: str
    shows: str
    takes: str
    tests: Sequence[str]
    sources: Sequence[str]
    folder: str = "."
    marks: str = "proof or not proof"
    select: str = ""
    options: Sequence[str] = ()
    pythons: Sequence[str] = ()
    needs: Sequence[str] = ()
    page: bool = True

    def commands(self) -> list[Command]:
        """The calls of pytest, in their order."""
        words = ["-v", *self.options, "-m", self.marks, *(["-k", self.select] if self.select else []), *self.tests]
        if not self.pythons:
            return [Command(["pytest", *words], self.name, self.folder)]
        return [
            Command([python, "-m", "pytest", *words], self.name, self.folder, str(Path(python).parent))
            for python in self.pythons
        ]


def read(path: Path = LIST) -> dict[str, Entry]:
    """The proofs by name."""
    return {name: Entry(name, **keys) for name, keys in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def only_shown(flags: str) -> bool:
    """Whether make was told to run nothing, by its MAKEFLAGS: -n, -q or -t.

    Make runs a line that calls make all the same.
    """
    letters = re.match(r"[A-Za-z]+(?=\s|$)", flags)
    return letters is not None and not set("nqt").isdisjoint(letters[0])


def run(entry: Entry, make: str, environment: Mapping[str, str]) -> int:
    """Make what a proof needs and run it, up to the first call that fails."""
    if entry.needs:
        # Make hands its job slots down as open files.
        code = subprocess.run([make, "--no-print-directory", *entry.needs], close_fds=False, check=False).returncode
        if code:
            return code
    for command in entry.commands():
        print(command.shown(), flush=True)
        if not only_shown(environment.get("MAKEFLAGS", "")) and (code := command.run()):
            return code
    return 0


def main(arguments: Sequence[str]) -> int | str:
    """The program's exit code, or what is wrong."""
    parser = argparse.ArgumentParser(description="Run a proof of the list.")
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="make what a proof needs, and run it")
    runs.add_argument("name", help="name of the proof")
    runs.add_argument("--make", default="make", help="the make program that makes what it needs")
    options = parser.parse_args(arguments)
    entries = read()
    if options.name not in entries:
        return f"There is no proof {options.name}. There are: {', '.join(entries)}."
    return run(entries[options.name], options.make, os.environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
