"""Every program completes its commands and options in a shell, and none pays for that when it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROJECTS = ("trainer", "benchmark-tool", "watch", "deploy", "simulator")
PROGRAMS = {
    name: place
    for project in PROJECTS
    for name, place in tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["scripts"].items()
}
#: For each program what is typed, and words that are offered then.
TYPED = {
    "gaudi3-train": ("gaudi3-train verify", {"verify-resume"}),
    "gaudi3-benchmark": ("gaudi3-benchmark comp", {"compare"}),
    "gaudi3-watch": ("gaudi3-watch clu", {"cluster"}),
    "gaudi3-deploy": ("gaudi3-deploy off", {"offers"}),
    "gaudi3-simulator": ("gaudi3-simulator sta", {"stages", "status"}),
}
PATHS = os.pathsep.join(str(ROOT / project / "src") for project in PROJECTS)
#: Prints what bash would offer for the words behind the name of the function that completes.
OFFER = 'COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '


def call(name: str) -> str:
    """Python that is the program."""
    module, _, function = PROGRAMS[name].partition(":")
    return f"import sys; sys.argv[0] = {name!r}; from {module} import {function}; sys.exit({function}())"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": PATHS, **environment}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a bash that has the simulator's script, with two clusters on record."""
    folder = tmp_path_factory.mktemp("completion")
    for name, nodes in (("demo", ["gaudi-1"]), ("other", ["gaudi-1", "gaudi-2"])):
        record = folder / "home" / "clusters" / name / "cluster.json"
        record.parent.mkdir(parents=True)
        listed = ", ".join(f'{{"name": "{node}", "address": "10.0.0.9", "cards": 8}}' for node in nodes)
        record.write_text(f'{{"name": "{name}", "subnet": "10.0.0.0/24", "nodes": [{listed}], "monitor": null}}')
    program = folder / "bin" / "gaudi3-simulator"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{call('gaudi3-simulator').replace('; ', chr(10))}\n")
    program.chmod(0o755)
    environment = {
        "GAUDI3_SIMULATOR_HOME": str(folder / "home"),
        "GAUDI3_SIMULATOR_CLUSTER": "demo",
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
    }
    script = run(str(program), "completion", "bash", **environment)
    assert script.returncode == 0, script.stderr
    (folder / "script").write_text(script.stdout)
    return {**environment, "SCRIPT": str(folder / "script")}


def offered(simulators: dict[str, str], *words: str) -> set[str]:
    """What bash offers for the last word."""
    function = 'source "$SCRIPT"; name=$(complete -p gaudi3-simulator | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
    shown = function + OFFER + '"$name" gaudi3-simulator "${!#}"; printf "%s\\n" "${COMPREPLY[@]}"'
    done = run("bash", "-c", shown, "bash", "gaudi3-simulator", *words, **simulators)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_every_program_is_tried() -> None:
    assert set(TYPED) == set(PROGRAMS)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"gaudi3-simulator"}))
def test_a_program_completes_its_commands(name: str) -> None:
    line, expected = TYPED[name]
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    given = {"COMP_WORDS": line, "COMP_CWORD": "1", variable: "complete_bash"}
    done = run(sys.executable, "-c", call(name), **given)
    assert expected <= set(done.stdout.split()), (done.stdout, done.stderr)


def test_the_names_of_deployments_are_completed(tmp_path: Path) -> None:
    for folder in ("demo", "depot", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "deployment.json").touch()
    given = {"COMP_CWORD": "2", "_GAUDI3_DEPLOY_COMPLETE": "complete_bash", "GAUDI3_DEPLOYMENTS": str(tmp_path)}
    done = run(sys.executable, "-c", call("gaudi3-deploy"), COMP_WORDS="gaudi3-deploy ssh de", **given)
    assert set(done.stdout.split()) == {"demo", "depot"}, done.stderr


def test_the_simulator_completes_its_commands(simulators: dict[str, str]) -> None:
    line, expected = TYPED["gaudi3-simulator"]
    assert offered(simulators, *line.split()[1:]) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("restart", "gau"), {"gaudi-1"}),
        (("fault", "--name", "other", ""), {"gaudi-1", "gaudi-2"}),
        (("fault", "gaudi-1", "port-d"), {"port-down"}),
        (("status", "--name", ""), {"demo", "other"}),
        (("ssh", "--name", "other", "gaudi-"), {"gaudi-1", "gaudi-2"}),
        (("open", "a"), {"alertmanager"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
    ],
)
def test_the_simulator_completes_names_of_its_clusters_nodes_and_faults(
    simulators: dict[str, str], words: tuple[str, ...], expected: set[str]
) -> None:
    assert offered(simulators, *words) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_their_script(simulators: dict[str, str], shell: str) -> None:
    done = run("gaudi3-simulator", "completion", shell, **simulators)
    assert done.returncode == 0, done.stderr
    assert "gaudi3-simulator completion --names nodes" in done.stdout


def test_a_shell_without_a_script_is_refused() -> None:
    done = run(sys.executable, "-c", "import sys; sys.argv[1:] = ['completion', 'ksh']; " + call("gaudi3-simulator"))
    assert done.returncode == 2
    assert "bash" in done.stderr


def test_the_simulator_says_what_is_missing_for_its_script() -> None:
    hidden = "import sys; sys.modules['shtab'] = None; sys.argv[1:] = ['completion', 'bash']; "
    done = run(sys.executable, "-c", hidden + call("gaudi3-simulator"))
    assert done.returncode == 1
    assert "shtab" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_start_does_not_import_what_only_completion_and_training_need(name: str) -> None:
    module = PROGRAMS[name].partition(":")[0]
    heavy = "{'shtab', 'torch', 'lightning', 'webbrowser', 'boto3'} & set(sys.modules)"
    done = run(sys.executable, "-c", f"import sys, {module}; print(*sorted({heavy}))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
