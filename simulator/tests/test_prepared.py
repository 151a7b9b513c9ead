"""What nodes carry from before, how they know themselves, and where the repository sends them for its packages."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPMessage
from pathlib import Path
from typing import IO

import pytest

from gaudi3_simulator import SimulatorError, cli, cluster, nodes, prepared, vault
from gaudi3_simulator.home import Cluster, Node, load_cluster

pytestmark = pytest.mark.usefixtures("own_home")


def rules(monkeypatch: pytest.MonkeyPatch, *settings: str) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_STRICTNESS", " ".join(settings))


def hosts_files(*names: str) -> dict[str, list[str]]:
    made = Cluster("c", "10.42.0.0/16", [Node(name, f"10.42.0.{11 + at}", 8) for at, name in enumerate(names)])
    made.folder.mkdir(parents=True, exist_ok=True)
    nodes.update_hosts(made)
    return {name: (made.folder / f"hosts-{name}").read_text().splitlines() for name in names}


def test_a_node_finds_its_own_name_on_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the installers of Debian and Ubuntu write it."""
    hosts_files("a", "b")
    rules(monkeypatch, "own-name-on-loopback=on")
    for _ in range(2):
        files = hosts_files("a", "b")
        for own, other, address in (("a", "b", "10.42.0.12"), ("b", "a", "10.42.0.11")):
            lines = [line.split() for line in files[own]]
            assert [line[0] for line in lines if own in line] == ["127.0.1.1"]
            assert [line[0] for line in lines if other in line] == [address]
    rules(monkeypatch, "own-name-on-loopback=off")
    assert "10.42.0.11 a" in hosts_files("a", "b")["a"]
    assert not any("127.0.1.1" in line for line in hosts_files("a", "b")["a"])


def test_the_installer_s_sources_file_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    rules(monkeypatch, "vendor-sources-file=on")
    file = prepared.files()["/etc/apt/sources.list.d/habanalabs_synapseai.list"]
    assert file.text.startswith("deb [signed-by=")
    assert prepared.REPOSITORY in file.text
    assert prepared.KEYRING not in prepared.files()
    assert prepared.files("-----BEGIN")[prepared.KEYRING].text == "-----BEGIN"
    assert f"signed-by={prepared.KEYRING}]" in file.text


def test_an_environment_lies_in_a_closed_home(tmp_path: Path) -> None:
    found = prepared.files()
    assert {path for path in found if "venv" in path} == {
        "/root/habanalabs-venv/pyvenv.cfg",
        "/root/habanalabs-venv/bin/python",
        "/root/habanalabs-venv/bin/python3",
    }
    nodes.lay_out(tmp_path, found)
    link = tmp_path / "root/habanalabs-venv/bin/python3"
    assert link.readlink() == Path("python")
    assert (tmp_path / "root/habanalabs-venv/pyvenv.cfg").stat().st_mode & 0o777 == 0o644


class Kept(urllib.request.HTTPRedirectHandler):
    """Follows nothing, and keeps where it was sent."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        self.sent_to = newurl


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], int]]:
    running = []

    def start(storage: str) -> int:
        server = vault.server("127.0.0.1", 0, str(tmp_path), storage)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread))
        return int(server.server_address[1])

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("name", ["pool/habanalabs-dkms_1_all.deb", "rhel/habanalabs-thunk-1.noarch.rpm"])
def test_packages_come_from_another_host(serve: Callable[[str], int], tmp_path: Path, name: str) -> None:
    for each in (name, "Release"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_text(each)
    port = serve(nodes.storage_host())
    kept = Kept()
    opener = urllib.request.build_opener(kept)
    assert opener.open(f"http://127.0.0.1:{port}/Release").read() == b"Release"
    with pytest.raises(urllib.error.HTTPError, match="302"):
        opener.open(f"http://127.0.0.1:{port}/{name}")
    assert kept.sent_to == f"http://vault-storage:{port}/{name}"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{name}", headers={"Host": "vault-storage"})
    assert urllib.request.urlopen(request).read() == name.encode()


def test_every_node_knows_the_storage_host() -> None:
    assert "10.42.0.2 vault-storage" in hosts_files("a")["a"]


@pytest.mark.parametrize(("board", "profile"), [("", "single"), ("HL-225", ""), ("HL-225", "vm"), ("", "")])
def test_a_cluster_keeps_its_board_and_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str, profile: str
) -> None:
    def bring_up(name: str, wanted: Callable[[Cluster | None], Cluster], log: object) -> Cluster:
        return wanted(load_cluster(name))

    monkeypatch.setattr(cluster, "bring_up", bring_up)
    monkeypatch.setattr(cluster, "free_subnet", lambda _: "10.89.80.0/24")
    made = cluster.up("c", 1, 2, False, print, board=board, profile=profile)
    made.save()
    nodes._add_cards(tmp_path / "root", made.nodes[0], made)
    state = json.loads((tmp_path / "root/var/lib/gaudi3-simulator/state.json").read_text())
    assert (state["board"], state["profile"]) == (board or "HL-325L", profile or "cluster")
    assert cluster.up("c", 1, 2, False, print).profile == profile
    other = "cluster" if profile == "vm" else "vm"
    with pytest.raises(SimulatorError, match=rf"^Cluster c has --profile {profile or 'of the default'}: give another"):
        cluster.up("c", 1, 2, False, print, profile=other)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--board", "HL-338"], "--board was HL-338: give one of HL-325L, HL-225."),
        (["--profile", "laptop"], "--profile was laptop: give one of cluster, single, vm."),
    ],
)
def test_other_boards_and_profiles_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["up", *arguments]) == 2
    assert capsys.readouterr().err == f"gaudi3-simulator: {sentence}\n"
