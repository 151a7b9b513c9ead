"""The trainer's whole suite with other versions of torch and Python, one file of tests after the other, on record.

    python trainer/tests/suite_by_file.py prepare NAME     an environment of `ENVIRONMENTS` in .cache/torch-matrix/NAME
    python trainer/tests/suite_by_file.py run NAME         the files that its record does not have yet, or has as failed

The files are those of a clone at the commit that is checked out, so that a long run sees no edit. What was
interrupted goes on. `make torch-matrix` puts the record into its table.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "torch-matrix"
ENVIRONMENTS = {"2.9.1": ("3.11", "2.9.1"), "2.11.0": ("3.11", "2.11.0"), "python-3.13": ("3.13", "2.13.0")}
"""Python and torch: the oldest and the newest torch of a release, and the newest Python with the tests' own torch."""
DEVICE_TORCH = "2.13."
"""The simulated device is built for this one; with another, or one for CUDA, its tests are skipped."""
PINNED = ("trainer", "controller", "dev", "extras")
SHARED = ("checkov", "docs", "mlflow", "standin", "tools")
"""Of .cache: what has nothing to do with the versions."""
FIRST = (
    *("test_launch.py", "test_launch_meetings.py", "test_fit.py", "test_checkpoint.py", "test_checkpoint_job.py"),
    *("test_checkpoint_sharded.py", "test_verify_resume.py", "test_interruption.py", "test_precision.py"),
    *("test_models.py", "test_data.py"),
)
"""What most depends on torch, in case that the time ends."""
LIMIT = 3600
"""Seconds of one file."""


@dataclass
class Counts:
    """What became of the tests of one file."""

    commit: str
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    """Names of tests; the file's where it did not come to its end."""


def interpreter(version: str) -> Path | None:
    """A Python of this version that really starts: a name on PATH may be a switch without anything behind it."""
    if sys.version.startswith(f"{version}."):
        return Path(sys.executable)
    names = [shutil.which(f"python{version}")]
    names += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for name in filter(None, names):
        said = subprocess.run(
            [name, "-c", "import sys; print(sys.version)"], text=True, capture_output=True, check=False
        )
        if said.returncode == 0 and said.stdout.startswith(f"{version}."):
            return Path(name)
    return None


def prepare(name: str) -> None:
    """Make the environment: torch as the package index has it, without a hash, and all else as the tests have it.

    A torch that is built for CUDA takes no second kind of device beside it, so that there is no simulated one then.
    """
    version, torch = ENVIRONMENTS[name]
    folder, tree = FOLDER / name, FOLDER / name / "tree"
    base = interpreter(version)
    if base is None:
        sys.exit(f"python{version} is not on this machine: install it, or leave {name} out.")
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        _do([str(base), "-m", "venv", str(folder / "venv")])
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    _do([*pip, f"torch=={torch}"])
    for each in PINNED:
        _do([*pip, "--require-hashes", "--no-deps", "-r", str(ROOT / "requirements" / f"{each}.txt")])
    if not tree.exists():
        _do(["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(tree)])
    _do(["git", "-C", str(tree), "checkout", "--quiet", "--detach", _commit(ROOT).split()[0]])
    (tree / ".cache").mkdir(exist_ok=True)
    for link, target in {
        ".venv": folder / "venv",
        **{f".cache/{each}": ROOT / ".cache" / each for each in SHARED},
    }.items():
        (tree / link).unlink(missing_ok=True)
        (tree / link).symlink_to(target)
    plain = [*pip, "--no-build-isolation", "--no-deps"]
    _do([*plain, "-e", str(tree / "simulator"), "-e", str(tree / "deploy"), "-e", str(tree / "trainer")], python)
    shutil.rmtree(tree / ".cache" / "hpu", ignore_errors=True)
    built_for = [str(python), "-c", "import torch; print(torch.version.cuda or 'cpu')"]
    alone = subprocess.run(built_for, capture_output=True, text=True, check=True).stdout.strip() == "cpu"
    if torch.startswith(DEVICE_TORCH) and alone:
        _do([*plain, "--target", str(tree / ".cache" / "hpu"), str(tree / "simulator" / "torch")], python)


def record(name: str) -> dict[str, Counts]:
    """What is on record of an environment, by file; nothing where it was never run."""
    path = FOLDER / name / "suite.json"
    if not path.exists():
        return {}
    return {each: Counts(**values) for each, values in json.loads(path.read_text(encoding="utf-8")).items()}


def about(name: str) -> str:
    """Which Python and torch it has."""
    program = "import platform, sys, torch; print(platform.python_version(), sys.base_prefix, torch.__version__)"
    command = [str(FOLDER / name / "venv" / "bin" / "python"), "-c", program]
    said = subprocess.run(command, text=True, capture_output=True, check=True, env=_environment(FOLDER / name)).stdout
    version, prefix, torch = said.split()
    return f"Python {version}{' of pyenv' if '.pyenv' in prefix else ''}, torch {torch}"


def run(name: str) -> bool:
    """Run what is not on record as passed; every file is written there at once. Did all pass?"""
    found, path = record(name), FOLDER / name / "suite.json"
    for each in files(FOLDER / name / "tree"):
        if each in found and not found[each].failed:
            continue
        found[each] = _of_file(FOLDER / name, each)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps({key: asdict(counts) for key, counts in found.items()}, indent=1) + "\n")
        draft.replace(path)
    return not any(each.failed for each in found.values())


def files(tree: Path) -> list[str]:
    """Names of all files of the trainer's tests, the first ones first."""
    names = {path.name for path in (tree / "trainer" / "tests").glob("test_*.py")}
    return [*(name for name in FIRST if name in names), *sorted(names.difference(FIRST))]


def sentence(found: Mapping[str, Counts], names: Iterable[str]) -> str:
    """How many passed, failed and were skipped, in how many of these files, and at which commits."""
    wanted = list(names)
    done = [found[name] for name in wanted if name in found]
    failed, skipped = sum(len(each.failed) for each in done), sum(each.skipped for each in done)
    words = f"{sum(each.passed for each in done):,} passed, {failed} failed, {skipped} skipped in "
    words += f"{len(done)} of {len(wanted)} files" if len(done) < len(wanted) else f"all {len(done)} files"
    commits = Counter(each.commit for each in done).most_common()
    return f"{words}, at {', '.join(f'{commit} ({count})' for commit, count in commits)}" if done else words


def counted(report: Path, commit: str, name: str) -> Counts:
    """Read a report of pytest in JUnit's format; one that is missing is a failure of the file."""
    if not report.exists():
        return Counts(commit, failed=[name])
    counts = Counts(commit)
    for case in ElementTree.parse(report).iter("testcase"):
        outcome = {child.tag for child in case}
        if outcome & {"failure", "error"}:
            counts.failed.append(case.get("name", "?"))
        elif "skipped" in outcome:
            counts.skipped += 1
        else:
            counts.passed += 1
    return counts


def _of_file(folder: Path, name: str) -> Counts:
    tree, commit = folder / "tree", _commit(folder / "tree")
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        command = [
            str(folder / "venv" / "bin" / "python"),
            "-m",
            "pytest",
            "-q",
            f"--junitxml={report}",
            f"tests/{name}",
        ]
        try:
            subprocess.run(command, cwd=tree / "trainer", env=_environment(folder), timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return Counts(commit, failed=[name])
        return counted(report, commit, name)


def _environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GAUDI3_", "PYTHON"))}
    return {**kept, "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{kept['PATH']}"}


def _commit(tree: Path) -> str:
    said = [
        subprocess.run(["git", "-C", str(tree), *arguments], text=True, capture_output=True, check=True).stdout.strip()
        for arguments in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
    ]
    return f"{said[0]} with changes" if said[1] else said[0]


def _do(command: list[str], python: Path | None = None) -> None:
    subprocess.run(command, check=True, env=_environment(python.parents[2]) if python is not None else None)


if __name__ == "__main__":
    verb, wanted = sys.argv[1:]
    if wanted not in ENVIRONMENTS:
        sys.exit(f"{wanted!r} is no environment: give one of {', '.join(ENVIRONMENTS)}.")
    if verb == "prepare":
        prepare(wanted)
    else:
        sys.exit(not run(wanted))
