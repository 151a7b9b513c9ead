"""synapseai_packages against a made-up dpkg and repository: what it plans, runs, writes and refuses."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import node as apt_node
from ansible_collections.gaudi3.scale.plugins.module_utils._apt import openpgp
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.repository import Repository, Source
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import packages
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.modules import synapseai_packages

Run = Callable[..., dict[str, Any]]
KEY = b"\x98\x06\x04abcde"
FINGERPRINT = openpgp.fingerprints(KEY)[0]
SET = ["habanalabs-firmware", "habanalabs-dkms"]


class World:
    """dpkg's answer, the repository's content, and what was run and warned."""

    def __init__(self, root: Path) -> None:
        self.root = root / "node"
        self.root.mkdir()
        self.dpkg = ""
        self.versions = {name: ["1.22.0-740", "1.23.0-695", "1.24.0-1007"] for name in [*SET, "habanalabs-qual"]}
        self.error = ""
        self.consulted = 0
        self.commands: list[str] = []
        self.warnings: list[str] = []
        self.failing = ""
        self.locked = 0
        self.sources = root / "sources"
        self.sources.mkdir()

    def installs(self, version: str, *names: str, want: str = "hold") -> None:
        self.dpkg += "".join(f"{name}\t{version}\t{want}\tinstalled\n" for name in names)

    def run(self, command: list[str]) -> tuple[int, str, str]:
        if "-W" in command:
            return 0, self.dpkg, ""
        self.commands.append(" ".join([Path(command[0]).name, *command[1:]]))
        if "apt-mark" in self.commands[-1] and self.locked:
            self.locked -= 1
            return 2, "", "dpkg: error: dpkg status database is locked by another process\n"
        if self.failing and self.failing in self.commands[-1]:
            return 100, "", "E: Unmet dependencies.\n"
        return 0, "", ""

    def file(self, name: str) -> str:
        return (self.root / name).read_text()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)

    def open_repository(
        node: apt_node.Node, source: Source, trusted: bytes | None, packages: list[str], release: str
    ) -> Repository:
        world.consulted += 1
        if world.error:
            raise Refusal(world.error)
        return Repository(trusted or KEY, FINGERPRINT, world.versions)

    for name in ("KEYRING", "SOURCE", "PIN"):
        monkeypatch.setattr(packages, name, str(world.root / name.lower()))
    monkeypatch.setattr(apt_node, "SOURCE", str(world.root / "source"))
    monkeypatch.setattr(packages, "open_repository", open_repository)
    monkeypatch.setattr(apt_node, "SOURCES", (str(world.sources / "*.list"), str(world.sources / "*.sources")))
    monkeypatch.setattr(apt_node, "OS_RELEASE", str(tmp_path / "os-release"))
    monkeypatch.setattr(apt_node.Node, "run", lambda _node, command: world.run(command))
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda _module, name, required=False: f"/usr/bin/{name}")
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: world.warnings.append(warning))
    return world


@pytest.fixture
def run(world: World, run_module: Run) -> Run:
    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        given = {
            "release": "1.23.0-695",
            "packages": SET,
            "repository_url": "http://vault/debian/",
            "suite": "jammy",
            "key_url": "http://vault/key",
            **options,
        }
        return run_module(synapseai_packages, check=check, **given)

    return call


def converge(world: World, run: Run) -> None:
    """Leave the node as a run leaves it."""
    run()
    world.dpkg = ""
    world.installs("1.23.0-695", *SET)
    world.commands.clear()
    world.warnings.clear()
    world.consulted = 0


def test_an_empty_node_gets_key_source_pin_packages_and_hold(world: World, run: Run) -> None:
    result = run()
    source = world.root / "source"
    lock = "-o DPkg::Lock::Timeout=120"
    install = (
        f"apt-get install --yes --quiet --no-install-recommends {lock} -o Dpkg::Options::=--force-confdef -o "
        "Dpkg::Options::=--force-confold habanalabs-firmware=1.23.0-695 habanalabs-dkms=1.23.0-695"
    )
    assert result["changed"] is True
    assert world.commands == [
        f"apt-get update --quiet {lock} -o Dir::Etc::SourceList={source} -o Dir::Etc::SourceParts=- -o "
        "APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any",
        f"{install} --simulate",
        install,
        "apt-mark hold habanalabs-firmware habanalabs-dkms",
    ]
    assert source.read_text() == (
        f"deb [signed-by={world.root}/keyring,{FINGERPRINT}] http://vault/debian jammy main\n"
    )
    assert world.file("pin").endswith("Package: habanalabs-*\nPin: version 1.23.0-695\nPin-Priority: 1001\n")
    assert (world.root / "keyring").read_bytes() == KEY
    assert [(world.root / name).stat().st_mode & 0o777 for name in ("keyring", "source", "pin")] == [0o644] * 3
    assert result["packages"][0] == {"name": "habanalabs-firmware", "before": None, "version": "1.23.0-695"}


def test_check_mode_predicts_with_versions_and_writes_nothing(world: World, run: Run) -> None:
    result = run(check=True)
    assert result["changed"] is True
    assert (world.commands, list(world.root.iterdir())) == ([], [])
    assert world.consulted == 1
    assert result["diff"][-1]["before"] == "habanalabs-firmware (not installed)\nhabanalabs-dkms (not installed)\n"
    assert result["diff"][-1]["after"] == "habanalabs-firmware 1.23.0-695 (held)\nhabanalabs-dkms 1.23.0-695 (held)\n"


def test_a_node_at_the_release_is_left_alone_and_the_repository_not_asked(world: World, run: Run) -> None:
    converge(world, run)
    result = run()
    assert (result["changed"], world.commands, world.consulted, world.warnings) == (False, [], 0, [])
    assert all(part["before"] == part["after"] for part in result["diff"])


def test_trust_on_first_use_is_warned_about_once(world: World, run: Run) -> None:
    run()
    fingerprint = openpgp.fingerprints(KEY)[0]
    assert world.warnings == [
        f"The key of http://vault/debian is trusted on first use: compare {fingerprint} with the vendor's and set "
        "synapseai_key_fingerprint to it."
    ]
    run()
    assert len(world.warnings) == 1


def test_a_pinned_key_needs_no_warning(world: World, run: Run) -> None:
    fingerprint = openpgp.fingerprints(KEY)[0]
    spaced = " ".join(fingerprint[start : start + 4] for start in range(0, 40, 4)).lower()
    assert run(key_fingerprint=spaced)["fingerprints"] == [fingerprint]
    assert world.warnings == []


def test_an_upgrade_moves_the_whole_family_past_its_hold(world: World, run: Run) -> None:
    converge(world, run)
    world.installs("1.23.0-695", "habanalabs-qual")
    result = run(release="1.24.0-1007")
    assert [package["name"] for package in result["packages"]] == [*SET, "habanalabs-qual"]
    assert world.commands[2].endswith(
        "--allow-change-held-packages habanalabs-firmware=1.24.0-1007 habanalabs-dkms=1.24.0-1007 "
        "habanalabs-qual=1.24.0-1007"
    )
    assert "--allow-downgrades" not in world.commands[2]
    assert "Pin: version 1.24.0-1007" in world.file("pin")


def test_a_downgrade_is_refused_before_anything_and_done_on_request(world: World, run: Run) -> None:
    converge(world, run)
    result = run(release="1.22.0-740")
    assert result["msg"] == (
        "2 packages are installed in a newer version (1.23.0-695) than 1.22.0-740; set "
        "synapseai_allow_downgrade=true to go back."
    )
    assert (world.commands, world.consulted) == ([], 0)
    assert "1.23.0-695" in world.file("pin")
    assert run(release="1.22.0-740", allow_downgrade=True)["changed"] is True
    assert "--allow-downgrades --allow-change-held-packages" in world.commands[2]


def test_a_lower_build_of_a_newer_version_is_an_upgrade(world: World, run: Run) -> None:
    converge(world, run)
    world.dpkg = ""
    world.installs("1.24.0-1007", *SET)
    assert run(release="1.24.1-482")["changed"] is True
    assert "--allow-downgrades" not in world.commands[2]


def test_a_lost_hold_is_put_back_without_asking_the_repository(world: World, run: Run) -> None:
    converge(world, run)
    world.dpkg = world.dpkg.replace("\thold\t", "\tinstall\t", 1)
    assert run(check=True)["changed"] is True
    assert run()["changed"] is True
    assert world.commands == ["apt-mark hold habanalabs-firmware habanalabs-dkms"]
    assert world.consulted == 0


def test_another_program_that_has_the_database_is_waited_for_with_the_hold(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    converge(world, run)
    world.dpkg = world.dpkg.replace("\thold\t", "\tinstall\t", 1)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    world.locked = 2
    assert run()["changed"] is True
    assert world.commands == ["apt-mark hold habanalabs-firmware habanalabs-dkms"] * 3
    world.locked = 99
    refused = run(timeout=0)
    assert refused["msg"].startswith("The packages cannot be put on hold: dpkg: error: dpkg status database is locked")


def test_a_removed_package_with_leftover_configuration_is_not_installed(world: World, run: Run) -> None:
    converge(world, run)
    world.dpkg += "habanalabs-graph\t1.22.0-740\tdeinstall\tconfig-files\n"
    assert run()["changed"] is False


def test_prerequisites_come_first_and_only_where_missing(world: World, run: Run) -> None:
    converge(world, run)
    world.installs("6.1-1", "ethtool", want="install")
    assert run(prerequisites=["ethtool"])["changed"] is False
    result = run(prerequisites=["ethtool", "linux-headers-5.15"])
    assert result["changed"] is True
    assert world.commands[0] == "apt-get update --quiet -o DPkg::Lock::Timeout=120"
    assert world.commands[1].endswith("--force-confold linux-headers-5.15")
    assert len(world.commands) == 2


def test_missing_prerequisites_stop_the_run_before_the_vendors_files_are_written(world: World, run: Run) -> None:
    world.failing = "linux-headers"
    assert run(prerequisites=["linux-headers-9"])["msg"] == (
        "What synapseai_prerequisites names cannot be installed: E: Unmet dependencies."
    )
    assert list(world.root.iterdir()) == []


def test_a_repository_that_does_not_verify_changes_nothing(world: World, run: Run) -> None:
    world.error = "The repository has no 1.24.1-482; it has 1.23.0-695."
    assert run(release="1.24.1-482")["msg"] == world.error
    assert (world.commands, list(world.root.iterdir())) == ([], [])


def test_another_file_with_the_repository_is_named_whatever_is_installed(world: World, run: Run) -> None:
    converge(world, run)
    vendor = world.sources / "habanalabs_synapseai.list"
    vendor.write_text("deb http://vault/debian jammy main\n")
    for check in (True, False):
        assert run(check=check)["msg"] == (
            f"{vendor} names http://vault/debian already, which apt refuses to have twice; set "
            "synapseai_take_over_sources=true to move it aside, or remove it."
        )
    assert (world.commands, world.consulted, vendor.exists()) == ([], 0, True)


@pytest.mark.parametrize("check", [True, False])
def test_another_file_is_moved_aside_with_a_backup(world: World, run: Run, check: bool) -> None:
    converge(world, run)
    vendor = world.sources / "habanalabs_synapseai.list"
    vendor.write_text("deb http://vault/debian jammy main\n")
    result = run(check=check, diff=True, take_over_sources=True)
    shown = {part["before_header"]: (part["before"], part["after"]) for part in result["diff"]}
    assert (result["changed"], shown[str(vendor)]) == (True, ("deb http://vault/debian jammy main\n", ""))
    assert result["taken_over"] == [str(vendor)]
    left = [path.name for path in world.sources.iterdir()]
    if check:
        assert left == [vendor.name]
    else:
        (backup,) = left
        assert backup.startswith("habanalabs_synapseai.list.") and backup.endswith("~")  # apt passes such names over
        assert run(take_over_sources=True)["changed"] is False


def test_another_file_that_has_more_in_it_is_not_moved(world: World, run: Run) -> None:
    site = world.sources / "site.list"
    site.write_text("deb http://vault/debian jammy main\ndeb http://site/debian jammy main\n")
    assert run(take_over_sources=True)["msg"] == (
        f"{site} names http://vault/debian beside other repositories; take its lines out of that file and run again."
    )


def test_an_ubuntu_without_universe_is_told_before_anything_is_installed(world: World, run: Run) -> None:
    (world.sources.parent / "os-release").write_text("ID=ubuntu\n")
    (world.sources / "ubuntu.list").write_text("deb http://archive/ubuntu jammy main\n")
    sentence = (
        "habanalabs-rdma-core needs pandoc of the component universe, which the node's sources of jammy do not have; "
        "enable it with 'add-apt-repository universe', or install pandoc."
    )
    names = [*SET, "habanalabs-rdma-core"]
    world.versions["habanalabs-rdma-core"] = ["1.23.0-695"]
    assert run(check=True, packages=names, prerequisites=["gcc"])["msg"] == sentence
    assert run(packages=names, prerequisites=["gcc"])["msg"] == sentence
    assert (world.commands, list(world.root.glob("keyring"))) == ([], [])
    world.installs("3.1", "pandoc")
    assert run(packages=names, prerequisites=["gcc"])["changed"] is True


def test_an_ubuntu_without_a_compiler_is_told_before_anything_is_installed(world: World, run: Run) -> None:
    (world.sources.parent / "os-release").write_text('ID="ubuntu"\n')
    assert run(check=True)["msg"] == (
        "habanalabs-dkms is compiled on the node, which has no compiler; add build-essential to "
        "synapseai_prerequisites."
    )
    assert run(check=True, prerequisites=["build-essential"])["changed"] is True
    world.installs("12", "gcc", want="install")
    assert run(check=True)["changed"] is True


def test_apts_complaint_is_passed_on(world: World, run: Run) -> None:
    world.failing = "habanalabs-dkms=1.23.0-695"
    result = run()
    assert result["msg"] == "The packages of 1.23.0-695 cannot be installed: E: Unmet dependencies."
    # After the failed simulation the distribution's own lists were refreshed once.
    assert world.commands[2] == "apt-get update --quiet -o DPkg::Lock::Timeout=120"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"key_fingerprint": "1E676CE836A2DE65"},
            "'1E676CE836A2DE65' is not a key fingerprint; set synapseai_key_fingerprint to all 40 hexadecimal "
            "digits, or to ''.",
        ),
        (
            {"release": "1.23.0"},
            "'1.23.0' is not a SynapseAI release: write it as MAJOR.MINOR.PATCH-BUILD, for example 1.23.0-695.",
        ),
    ],
)
def test_bad_input_is_told_in_one_sentence(world: World, run: Run, options: dict[str, str], message: str) -> None:
    assert run(**options)["msg"] == message
    assert (world.commands, world.consulted) == ([], 0)
