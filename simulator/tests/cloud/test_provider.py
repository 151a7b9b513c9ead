"""The stand-in provider by the messages of Terraform's protocol, in the environment that Terraform starts it in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gaudi3_simulator.cloud import mirror

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".cache" / "standin" / "bin" / "python"
SUITE = ROOT / "tests" / "suite"


def command(script: Path, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The script in the stand-in's environment, measured where this run is: that environment has no coverage."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}
    sources = [str(mirror.SOURCE_FOLDER)]
    words = [str(PYTHON)]
    if "GAUDI3_COVERAGE" in os.environ:
        import coverage

        (folder / "coverage").symlink_to(Path(coverage.__file__).parent)
        sources += [str(folder), str(SUITE / "coverage_plugins")]
        words += ["-m", "coverage", "run", f"--rcfile={SUITE / 'coveragerc'}"]
    return [*words, str(script)], {**environment, "PYTHONPATH": os.pathsep.join(sources)}


@pytest.fixture(scope="module", name="answers")
def the_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    if not PYTHON.exists():
        pytest.skip("the stand-in's environment is missing: make .cache/standin/ready")
    folder = tmp_path_factory.mktemp("provider")
    words, environment = command(Path(__file__).with_name("provider_calls.py"), folder)
    done = subprocess.run(
        [*words, str(folder / "world")], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("types of a machine", True),
        ("made", ["net", "r014", "available"]),
        ("renamed", ["other", True, [], []]),
        ("moved", [["zone"]]),
        ("read", "other"),
        ("upgraded", True),
        ("imported", "other"),
        ("zones", ["us-east-1", "us-east-2", "us-east-3"]),
        ("read gone", None),
        ("served", [0, "us-south"]),
        ("certificate", [True, True, True]),
    ],
)
def test_what_terraform_gets(answers: dict[str, object], what: str, expected: object) -> None:
    assert answers[what] == expected


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("no key", "IC_API_KEY"),
        ("validated", "dsa"),
        ("twice", "net"),
        ("profile", "gx9 is not found"),
        ("imported none", "Cannot import non-existent remote object"),
    ],
)
def test_what_terraform_is_refused(answers: dict[str, object], what: str, expected: str) -> None:
    refused = answers[what]
    assert isinstance(refused, list)
    assert len(refused) == 1
    assert expected in refused[0]


def test_a_vpc_with_a_prefix_of_its_own_can_go(answers: dict[str, object]) -> None:
    assert answers["gone"] == [None, []]


def test_the_mirror_has_the_stand_in_under_the_providers_name(tmp_path: Path) -> None:
    settings = mirror.make(tmp_path, "ibm", "2.5.0", PYTHON)
    script = next((tmp_path / "mirror").rglob("terraform-provider-ibm_v2.5.0"))
    place = script.relative_to(tmp_path / "mirror").parts
    assert place[:4] == (mirror.HOST, "ibm-cloud", "ibm", "2.5.0")
    assert os.access(script, os.X_OK)
    assert str(PYTHON) in script.read_text()
    assert "direct" not in settings.read_text()
    assert mirror.environment(settings, tmp_path / "world")["TF_CLI_CONFIG_FILE"] == str(settings)
