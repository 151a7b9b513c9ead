"""Run one of the proofs that `proofs.toml` lists, or find the pages that are older than what they prove.

    python tests/suite/proofs.py run kill-matrix     what `make proof-kill-matrix` does
    python tests/suite/proofs.py ages                what `make proofs` shows

A page is old once a commit has changed one of the sources that the list has for its proof.
"""

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
_COMMIT = re.compile(r"\bcommit ([0-9a-f]{7,40})( with changes)?,")


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


def commit_of(page: str) -> tuple[str, bool]:
    """The commit that the text of a page names, and whether files differed from it; no commit where it names none."""
    found = _COMMIT.search(page)
    return (found[1], bool(found[2])) if found else ("", False)


def no_history(root: Path) -> str:
    """Why commits of the past cannot be looked for here; empty where they can."""
    if not (root / ".git").exists():
        return "this is no git checkout"
    if _git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return "this checkout is shallow: it has no commits of the past"
    return ""


def is_in_history(root: Path, commit: str) -> bool:
    """Whether what is checked out comes from a commit."""
    return _git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def oldest(root: Path, commits: Sequence[str]) -> str:
    """That of the commits which has the shortest history; each may be followed by "with changes"."""
    return min(commits, key=lambda each: int(_git(root, "rev-list", "--count", each.split()[0]).stdout))


def why_old(root: Path, entry: Entry) -> str:
    """Why the proof has to be run again; empty where its page is as new as its sources."""
    page = root / PAGES / f"{entry.name}.md"
    if not page.is_file():
        return "no page yet"
    commit, with_changes = commit_of(page.read_text(encoding="utf-8"))
    if not commit or not is_in_history(root, commit):
        return f"commit {commit} is not in the history" if commit else "its page names no commit"
    if with_changes:
        return f"made with changes to {commit}"
    since = _git(root, "log", "--format=%h", f"{commit}..HEAD", "--", *entry.sources).stdout.split()
    return f"sources changed by {len(since)} commit{'s'[: len(since) > 1]} since {commit}" if since else ""


def ages(root: Path, entries: Mapping[str, Entry]) -> list[str]:
    """Lines about all pages: the proofs to run again, with the reason and how long each takes, then the others."""
    reasons = {name: why_old(root, entry) for name, entry in entries.items() if entry.page}
    old = {name: reason for name, reason in reasons.items() if reason}
    lines = ["Proofs to run again, each by `make proof-NAME`:"] if old else []
    lines += [f"  {name:14} {reason:46}  {entries[name].takes}" for name, reason in old.items()]
    current = [name for name in reasons if name not in old]
    return [*lines, f"Up to date: {', '.join(current) or 'none'}"]


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def main(arguments: Sequence[str]) -> int | str:
    """The program's exit code, or what is wrong."""
    parser = argparse.ArgumentParser(description="Run a proof of the list, or say which pages are old.")
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="make what a proof needs, and run it")
    runs.add_argument("name", help="name of the proof")
    runs.add_argument("--make", default="make", help="the make program that makes what it needs")
    commands.add_parser("ages", help="list the pages that are older than what they prove")
    options = parser.parse_args(arguments)
    entries = read()
    if options.command == "ages":
        if reason := no_history(ROOT):
            return f"The age of the pages is unknown: {reason}."
        print("\n".join(ages(ROOT, entries)))
        return 0
    if options.name not in entries:
        return f"There is no proof {options.name}. There are: {', '.join(entries)}."
    return run(entries[options.name], options.make, os.environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
