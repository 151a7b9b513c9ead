"""The page of a monitoring host: the program that is shipped, what it is told, and the Python that it needs."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.watch import OLDEST, PROGRAM, program
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from tests.unit.collection.test_node_python import later

from .services import files, service

ROOT = Path(__file__).resolve().parents[5]
SETTINGS = "/etc/gaudi3-scale/watch/settings.json"
#: Imports what the unit runs, without any package, and prints which files that were.
PROGRAM_OF_THE_UNIT = """
import json, sys
import gaudi3_watch.service, gaudi3_watch.pages
files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
kinds = {name: kind.__name__ for name, kind in gaudi3_watch.service.KINDS.items()}
print(json.dumps({"files": files, "assets": sorted(gaudi3_watch.pages.STATIC), "kinds": kinds}))
"""


def old_python() -> str:
    """The oldest Python that the page is for, where pyenv has it."""
    version = ".".join(map(str, OLDEST))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    return str(found[0]) if found else sys.executable


def written(tmp_path: Path) -> Path:
    """The program as the role writes it."""
    for path, file in files("watch").items():
        if path.startswith(PROGRAM):
            place = tmp_path / path.removeprefix(PROGRAM).lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(file.content)
    return tmp_path


def test_what_is_shipped_is_what_the_unit_imports_and_serves(tmp_path: Path) -> None:
    folder = written(tmp_path)
    command = [old_python(), "-S", "-s", "-c", PROGRAM_OF_THE_UNIT]
    done = subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    imported = {str(Path(each).relative_to(folder)) for each in answer["files"] if Path(each).is_relative_to(folder)}
    assets = {f"gaudi3_watch/static/{name}" for name in (*answer["assets"], "uplot-license.txt")}
    assert {path.removeprefix(f"{PROGRAM}/") for path in program()} == imported | assets
    told = json.loads(files("watch")[SETTINGS].content)
    assert {name: type(value).__name__ for name, value in told.items()} == answer["kinds"]


@pytest.mark.parametrize("source", sorted(each for each in program().values() if each.endswith(".py")))
def test_what_is_shipped_is_for_the_oldest_python(source: str) -> None:
    """Also where no such Python is installed."""
    tree = ast.parse((ROOT / source).read_text(encoding="utf-8"), feature_version=OLDEST)
    assert later(tree) == []


def test_it_is_told_where_it_listens_and_whom_it_asks() -> None:
    found = json.loads(files("watch")[SETTINGS].content)
    assert found == {
        "address": "10.0.0.9", "port": 9109, "names": ["10.0.0.9", "mon"], "prometheus": "https://10.0.0.9:9090",
        "simulated": False,
    }  # fmt: skip
    given = {"watch_simulated": "yes", "watch_prometheus_url": "https://other:9", "watch_certificate_hosts": ["page"]}
    changed = json.loads(files("watch", **given)[SETTINGS].content)
    assert changed["simulated"] is True and changed["prometheus"] == "https://other:9"
    assert changed["names"] == ["page", "10.0.0.9"]
    six = json.loads(files("watch", watch_listen_address="fd00::9", prometheus_port=9191)[SETTINGS].content)
    assert six["prometheus"] == "https://[fd00::9]:9191" and six["address"] == "fd00::9"


def test_secrets_are_roots_alone_and_never_in_the_settings() -> None:
    made = files("watch")
    secret = {path for path, file in made.items() if file.secret}
    assert {path.rpartition("/")[2] for path in secret} == {
        "ca.crt", "server.crt", "server.key", "password", "prometheus_password"
    }  # fmt: skip
    assert all((made[path].group, made[path].mode) == ("root", "0640") for path in secret)
    assert not [path for path, file in made.items() if path not in secret and "the password of" in str(file.content)]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"version": ""}, "mon has no /usr/bin/python3 that runs, and gaudi3-watch needs one: install Python 3.9"),
        ({"version": "3.8"}, "/usr/bin/python3 on mon is Python 3.8, and gaudi3-watch needs 3.9: install Python 3.9"),
        ({"version": "2.7"}, "/usr/bin/python3 on mon is Python 2.7, and gaudi3-watch needs 3.9: "),
    ],
)
def test_a_python_that_does_not_run_it_is_refused_with_the_remedy(answer: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal) as raised:
        service("watch").learn({"watch_python": answer})
    assert str(raised.value).startswith(sentence)
    assert str(raised.value).endswith("name it in watch_python, or set watch_enabled to false.")


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.13", "4.0"])
def test_a_newer_python_is_taken(version: str) -> None:
    service("watch").learn({"watch_python": {"version": version}})


def test_a_host_is_asked_for_its_python() -> None:
    part = service("watch", watch_python="/opt/python/bin/python3").first()[-1]
    assert (part["module"], part["arguments"]) == ("interpreter", {"executable": "/opt/python/bin/python3"})


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"watch_python": "python3"},
            'watch_python is "python3"; give the path of a Python, such as /usr/bin/python3.',
        ),
        ({"watch_python": "/x;y"}, 'watch_python is "/x;y"; give'),
        ({"watch_prometheus_url": "http://mon:9090"}, "watch_prometheus_url is not an address such as https://"),
        ({"watch_prometheus_url": "https://a:b@mon"}, "watch_prometheus_url is not an address such as https://"),
        ({"watch_secrets": {"watch_password": "short"}}, "The secret watch_password has 5 characters; hand over 12 or"),
        ({"watch_port": 0}, "watch_port is 0; give a port from 1 to 65535."),
        ({"watch_listen_address": "0.0.0.0"}, 'watch_listen_address is "0.0.0.0"; give the host'),
    ],
)
def test_what_is_wrong_is_said(variables: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal) as raised:
        service("watch", **variables).refuse()
    assert str(raised.value).startswith(sentence)
    assert "a:b@" not in str(raised.value)
    service("watch").refuse()


def test_it_can_be_switched_off() -> None:
    assert service("watch").enabled and not service("watch", watch_enabled="no").enabled
