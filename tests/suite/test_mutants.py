"""Lines of the product changed one at a time, in a copy of the checkout: a test has to notice each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.suite.proof import ROOT, Proof

MUTANTS = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
PROOF = Proof(
    "mutants",
    {
        "plugins": [name for name, mutant in MUTANTS.items() if mutant["file"].startswith("plugins/")],
        "plays": [name for name, mutant in MUTANTS.items() if not mutant["file"].startswith("plugins/")],
    },
)
TEXT = """
Each case changes one line of a copy of the checkout and runs the tests of its file. The change is noticed when a test
fails. `tests/suite/mutants.toml` has the changes.
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the checkout, without its history and caches."""
    target = tmp_path_factory.mktemp("copy") / "checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        source = ROOT / name
        if source.is_symlink() or source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return target


def noticed_by(copy: Path, tests: str) -> list[str]:
    """The tests of ``tests`` that fail in the copy."""
    # A user that plays run as has to get at the copy.
    for folder in (copy, *copy.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE", "GAUDI3_"))}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()],
        cwd=copy, env={**environment, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode in (0, 1), result.stdout[-3000:] + result.stderr[-3000:]
    return [line.split(" ")[1] for line in result.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]


def test_every_changed_line_is_there() -> None:
    gone = [name for name, mutant in MUTANTS.items() if mutant["old"] not in (ROOT / mutant["file"]).read_text()]
    assert not gone, "bring tests/suite/mutants.toml up to date"


@pytest.mark.parametrize("name", PROOF.parameters({name: name for name in MUTANTS}))
def test_a_changed_line_is_noticed(name: str, copy: Path) -> None:
    PROOF.skip_if_held(name)
    mutant = MUTANTS[name]
    path = copy / mutant["file"]
    before = path.read_text()
    assert mutant["old"] in before
    path.write_text(before.replace(mutant["old"], mutant["new"], 1))
    try:
        failed = noticed_by(copy, mutant["tests"])
    finally:
        path.write_text(before)
    assert failed, f"no test of {mutant['tests']} notices the change"
    test = failed[0].partition("::")[2]
    PROOF.note(name, {"file": f"`{mutant['file']}`", "noticed by": f"`{test}`"})
    PROOF.write_table("Changes that a test notices", TEXT, ("file", "noticed by"))
