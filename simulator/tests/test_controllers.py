"""Stand-in management controllers: for readers with a password alone, beside the nodes, and gone when they end."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator import RequestError, SimulatorError, controllers
from gaudi3_simulator.home import Cluster, Node
from gaudi3_simulator.inventory import inventory
from gaudi3_simulator.node import bmc

SHOWN = {"/redfish/v1": {"Product": bmc.PRODUCT}, "/redfish/v1/Chassis": {"Members": []}}


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return controllers.certify(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def address(certified: tuple[Path, Path]) -> Iterator[str]:
    with controllers.served(lambda: SHOWN, "secret", *certified) as found:
        yield found


def ask(
    address: str, certificate: Path, method: str, path: str, password: str | None = "secret"
) -> tuple[int, dict[str, str], Any]:
    host, _colon, port = address.partition(":")
    link = http.client.HTTPSConnection(
        host, int(port), context=ssl.create_default_context(cafile=certificate), timeout=10
    )
    token = base64.b64encode(f"{controllers.USER}:{password}".encode()).decode()
    link.request(method, path, headers={"Authorization": f"Basic {token}"} if password else {})
    answer = link.getresponse()
    body = answer.read()
    link.close()
    return answer.status, dict(answer.headers), json.loads(body) if body else None


def test_a_reader_with_the_password_reads(address: str, certified: tuple[Path, Path]) -> None:
    status, headers, content = ask(address, certified[0], "GET", "/redfish/v1/Chassis/")
    assert (status, content) == (200, {"Members": []})
    assert headers["Server"].startswith("gaudi3-simulator-stand-in")


@pytest.mark.parametrize(("path", "password", "status"), [
    ("/redfish/v1/", None, 200), ("/redfish/v1/Chassis", None, 401), ("/redfish/v1/Chassis", "guessed", 401),
    ("/redfish/v1/Nothing", "guessed", 401), ("/redfish/v1/Nothing", "secret", 404), ("/", "secret", 404),
])  # fmt: skip
def test_only_the_root_is_open(
    path: str, password: str | None, status: int, address: str, certified: tuple[Path, Path]
) -> None:
    assert ask(address, certified[0], "GET", path, password)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_whatever_changes_something_is_refused(method: str, address: str, certified: tuple[Path, Path]) -> None:
    assert ask(address, certified[0], method, "/redfish/v1/Chassis")[0] == 405


def test_it_speaks_tls_alone(address: str) -> None:
    host, _colon, port = address.partition(":")
    link = http.client.HTTPConnection(host, int(port), timeout=10)
    with pytest.raises((http.client.HTTPException, OSError)):
        link.request("GET", "/redfish/v1")
        link.getresponse()


def test_an_eye_looks_once_a_second_and_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(controllers.time, "monotonic", lambda: now[0])
    seen: list[dict[str, Any] | None] = [
        {"/redfish/v1/Chassis/chassis": {"PowerState": "On", "Serial": "1"}}, None, None
    ]  # fmt: skip
    asked = []
    eye = controllers.Eye(lambda: asked.append(1) or seen[len(asked) - 1])  # type: ignore[func-returns-value]
    assert eye()["/redfish/v1/Chassis/chassis"]["PowerState"] == "On"
    assert (eye(), len(asked)) == (seen[0], 1)
    now[0] += 1.5
    assert eye()["/redfish/v1/Chassis/chassis"] == {"PowerState": "Off", "Serial": "1"}
    assert len(asked) == 2


def test_a_node_is_asked_by_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        subprocess.CompletedProcess([], 0, json.dumps(SHOWN), ""),
        subprocess.CompletedProcess([], 125, "", "off"),
    ]
    asked = []

    def exec_in(*command: str) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return answers[len(asked) - 1]

    monkeypatch.setattr(controllers, "exec_in", exec_in)
    assert controllers.seen_in("demo", "gaudi-1") == SHOWN
    assert controllers.seen_in("demo", "gaudi-1") is None
    assert asked[0] == ("demo", "gaudi-1", "/usr/local/sbin/gaudi3-simulator-node", "bmc")


@pytest.mark.usefixtures("own_home")
def test_the_inventory_names_them_as_long_as_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "seen_in", lambda cluster, node: {"/redfish/v1": {"Name": f"{cluster} {node}"}})
    nodes = [Node("gaudi-1", "10.89.80.11", 8), Node("gaudi-2", "10.89.80.12", 8)]
    cluster = Cluster("demo", "10.89.80.0/24", nodes, Node("monitor-1", "10.89.80.3"))
    cluster.save()
    with controllers.of_cluster(cluster) as known:
        variables = inventory(cluster)["_meta"]["hostvars"]
        assert {name: each.get("gaudi_bmc_address") for name, each in variables.items()} == {**known, "monitor-1": None}
        given = json.loads((cluster.bmc_folder / "variables.json").read_text())
        secret = Path(given["gaudi_bmc_ca_file"])
        for name, address in known.items():
            answer = ask(address, secret, "GET", "/redfish/v1", given["gaudi_bmc_password"])
            assert answer[2] == {"Name": f"demo {name}"}
        modes = {path.name: path.stat().st_mode & 0o77 for path in cluster.bmc_folder.iterdir()}
        assert (modes["key.pem"], modes["variables.json"], cluster.bmc_folder.stat().st_mode & 0o77) == (0, 0, 0)
    assert "gaudi_bmc_address" not in json.dumps(inventory(cluster))


@pytest.mark.usefixtures("own_home")
def test_without_a_cluster_there_are_none() -> None:
    with pytest.raises(RequestError, match="no cluster called demo"):
        controllers.run("demo")


@pytest.mark.usefixtures("own_home")
def test_a_gaudi_2_has_another_model() -> None:
    Cluster("old", "10.89.80.0/24", [Node("gaudi-1", "10.89.80.11", 8)], board="HL-225").save()
    with pytest.raises(RequestError, match="Cluster old has HL-225"):
        controllers.run("old")


def test_a_certificate_that_cannot_be_made_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SimulatorError, match="'openssl req' failed"):
        controllers.certify(tmp_path / "none")
    monkeypatch.setattr(controllers.shutil, "which", lambda _name: None)
    with pytest.raises(SimulatorError, match="install the package openssl"):
        controllers.certify(tmp_path)
