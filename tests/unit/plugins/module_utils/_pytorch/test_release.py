"""Which tarball of the vendor's PyTorch is for which node, and what comes beside it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.reach import Answer, Unreachable, follow
from ansible_collections.gaudi3.scale.plugins.module_utils._pip import Pin, index_environment
from ansible_collections.gaudi3.scale.plugins.module_utils._pytorch import pins as pytorch_pins
from ansible_collections.gaudi3.scale.plugins.module_utils._pytorch import release as pytorch_release
from ansible_collections.gaudi3.scale.plugins.module_utils._pytorch.release import tarball
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._release import support_matrix
from ansible_collections.gaudi3.scale.plugins.module_utils._wheels import python_admitted
from gaudi3_simulator.vendor import pytorch as shelf

ROOT = Path(__file__).resolve().parents[5]
FILES = ROOT / "roles/pytorch/files/requirements.txt"


@pytest.mark.parametrize(
    ("release", "system", "python", "path"),
    [
        ("1.23.0-695", "Ubuntu 24.04", "3.12.3", "1.23.0/695/pytorch/ubuntu2404/pytorch_modules-v2.9.0_1.23.0_695.tgz"),
        ("1.24.1-482", "Ubuntu 22.04", "3.11.0",
         "1.24.1/482/pytorch/ubuntu2204/pytorch_modules_py311-v2.11.0_1.24.1_482.tgz"),
        ("1.24.0-1007", "RedHat 9.4", "3.11.9", "1.24.0/1007/pytorch/rhel94/pytorch_modules-v2.10.0_1.24.0_1007.tgz"),
        ("1.23.0-695", "RedHat 9.4", "3.12.5", "1.23.0/695/pytorch/rhel94/pytorch_modules_py312-v2.9.0_1.23.0_695.tgz"),
        ("1.24.0-1007", "RedHat 9.6", "3.12.9", "1.24.0/1007/pytorch/rhel96/pytorch_modules-v2.10.0_1.24.0_1007.tgz"),
    ],
)  # fmt: skip
def test_the_tarball_of_a_node(release: str, system: str, python: str, path: str) -> None:
    assert tarball(release, pytorch_release.folder_of(system), system, python, "", []).path == path


@pytest.mark.parametrize(
    ("release", "system", "python", "sentence"),
    [
        ("1.23.0-695", "Ubuntu 22.04", "3.10.12",
         "Ubuntu 22.04's Python 3.10 is too old for the trainer, which needs 3.11 or newer: set pytorch_python to such "
         "a Python (the vendor has a tarball for 3.11), or leave PyTorch and training out with --skip-tags "
         "pytorch,train."),
        ("1.23.0-695", "RedHat 9.6", "3.9.18", "RedHat 9.6's Python 3.9 is too old for the trainer, which needs 3.11"),
        ("1.24.0-1007", "Ubuntu 24.04", "3.13.1",
         "The vendor's PyTorch of release 1.24.0-1007 for ubuntu2404 is for Python 3.12, but pytorch_python is 3.13: "
         "set pytorch_python to one of these, or leave PyTorch and training out with --skip-tags pytorch,train."),
        ("1.22.0-740", "Ubuntu 24.04", "3.12.3",
         "Release 1.22.0-740 brings PyTorch 2.7.1, and the trainer needs 2.9 or newer: take a newer release, or leave"),
        ("1.24.1-482", "RedHat 9.4", "3.12.1",
         "The vendor has no PyTorch of release 1.24.1-482 for the folder rhel94, only for Ubuntu 22.04, Ubuntu 24.04, "
         "RedHat 9.6: use one of these, set pytorch_system to the folder of one that is like it, or pytorch_state to"),
        ("1.23.0-695", "Debian 12", "3.11.2",
         "The vendor has no PyTorch of release 1.23.0-695 for Debian 12, only for Ubuntu 22.04, Ubuntu 24.04, RedHat"),
        ("1.23.0", "Ubuntu 24.04", "3.12.3", "pytorch_release: '1.23.0' is not a SynapseAI release: write it as"),
        ("1.24.2-481", "Ubuntu 24.04", "3.12.3", "No public source names the PyTorch of release 1.24.2-481: set"),
    ],
)  # fmt: skip
def test_a_node_without_a_tarball(release: str, system: str, python: str, sentence: str) -> None:
    with pytest.raises(Refusal) as error:
        tarball(release, pytorch_release.folder_of(system), system, python, "", [])
    assert str(error.value).startswith(sentence)


def test_what_a_site_knows_better() -> None:
    """A version that no public source names, a mirror's Python, and a folder for a system that is like its own."""
    assert tarball("1.24.2-481", "ubuntu2404", "Debian 13", "3.13.5", "2.11.1", ["3.13"]).path == (
        "1.24.2/481/pytorch/ubuntu2404/pytorch_modules-v2.11.1_1.24.2_481.tgz"
    )
    # Not yet in the matrix: whether the tarball is there is for the vendor's host to say.
    assert tarball("1.25.0-1", "rhel96", "RedHat 9.6", "3.12.1", "2.12.0", []).system == "rhel96"


def test_versions_are_those_that_the_simulator_has() -> None:
    known = {release: version for release, version in shelf.offered().items() if not release.startswith("1.15")}
    assert len(known) > 10
    for release, version in known.items():
        assert support_matrix.torch_version(release) in (version, None), release
    systems = [each for each in support_matrix.known_releases() if each in known]
    for release in systems:
        folders = [pytorch_release.FOLDERS[name] for name in pytorch_release.offered(release)]
        assert sorted(folders) == sorted(shelf.systems(release)), release


def test_the_trainers_python_is_the_trainers() -> None:
    project = tomllib.loads((ROOT / "trainer/pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={pytorch_release.TRAINER_PYTHON}"
    for version in ("3.9.18", "3.10.12", "3.11.0", "3.12.3", "3.13"):
        assert pytorch_release.too_old(version) is not python_admitted(project["requires-python"], version)


def test_the_roles_list_is_the_pinned_one() -> None:
    """To bring it into step, join each pin of requirements/trainer.txt with its hashes into one line."""
    pinned = (ROOT / "requirements/trainer.txt").read_text().replace("\\\n", " ").splitlines()
    wanted = [" ".join(line.split()) for line in pinned if line and not line.startswith("#")]
    assert not [line for line in wanted if line.startswith("torch==")]
    assert FILES.read_text().splitlines()[1:] == wanted
    pins = pytorch_pins.pins(wanted)
    assert [pin.line for pin in pins.values()] == wanted
    project = tomllib.loads((ROOT / "trainer/pyproject.toml").read_text())["project"]
    names = {each.partition(">")[0].partition("<")[0] for each in project["dependencies"]} - {"torch"}
    assert names <= set(pins)


def test_the_release_is_the_drivers() -> None:
    driver = (ROOT / "roles/synapseai/defaults/main.yml").read_text()
    (release,) = [line.partition(": ")[2] for line in driver.splitlines() if line.startswith("synapseai_release:")]
    assert f"default('{release}')" in (ROOT / "roles/pytorch/defaults/main.yml").read_text()


def test_the_vendors_own_stay() -> None:
    versions = {"lightning": "2.6.6", "numpy": "2.4.6", "rich": "15.1.0", "attrs": "26.1.0"}
    pinned = {name: Pin(name, version, "") for name, version in versions.items()}
    installed = {"numpy": "1.26.4", "rich": "15.0.0", "attrs": "26.1.0", "torch": "2.9.0a0+git1"}
    assert list(map(str, pytorch_pins.wanted(pinned, installed, ["rich"]))) == ["lightning==2.6.6", "rich==15.1.0"]
    assert list(map(str, pytorch_pins.wanted(pinned, installed, []))) == ["lightning==2.6.6"]


@pytest.mark.parametrize(
    ("given", "environment", "settings", "index"),
    [
        ("", {}, [], "https://pypi.org/simple"),
        ("http://mirror/simple/", {"PIP_INDEX_URL": "http://a"}, ["[global]\nindex-url = http://b\n"], "http://mirror/simple"),
        ("", {"PIP_INDEX_URL": "http://a/simple"}, ["[global]\nindex-url = http://b\n"], "http://a/simple"),
        ("", {}, ["[global]\nindex-url = http://b\n", "[install]\nindex-url = http://c/\n"], "http://c"),
        ("", {}, ["no settings", "[global]\nindex-url = http://u:50%25@b\n"], "http://u:50%25@b"),
    ],
)  # fmt: skip
def test_the_index_that_pip_asks(given: str, environment: dict[str, str], settings: list[str], index: str) -> None:
    assert pytorch_pins.index_url(given, environment, settings) == index


def test_an_index_without_tls_is_trusted_only_where_somebody_consented() -> None:
    def environ(url: str | None, consent: bool = False) -> dict[str, str]:
        return index_environment(url, consent, "pytorch_pip_index_url")

    assert environ("") == environ(None) == {}
    assert environ("https://m/simple") == {"PIP_INDEX_URL": "https://m/simple"}
    assert environ("http://u:p@m:81/simple", consent=True)["PIP_TRUSTED_HOST"] == "m"
    for host in ("127.0.0.1", "[::1]", "localhost"):
        assert environ(f"http://{host}:81/simple")["PIP_TRUSTED_HOST"] == host.strip("[]")
    for host in ("m", "127.0.0.1.example.org", "10.0.0.1", ""):
        with pytest.raises(Refusal) as caught:
            environ(f"HTTP://u:p@{host}:81/simple")
        assert str(caught.value) == (
            f"pytorch_pip_index_url is a plain http address on {host or 'no host'}: give an https address, or set "
            "pytorch_pip_index_plain_http to true if everyone on the way may read the traffic."
        )


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("rich-15.0.0-py3-none-any.whl#sha256=1", "http://i/simple/rich/rich-15.0.0-py3-none-any.whl"),
        ("../../files/rich-15.0.0.tar.gz", "http://i/files/rich-15.0.0.tar.gz"),
        (
            "https://files.example/p/rich-15.0.0-py3-none-any.whl",
            "https://files.example/p/rich-15.0.0-py3-none-any.whl",
        ),
        ("rich-15.0.0.1-py3-none-any.whl", ""),
    ],
)
def test_the_file_of_a_version(link: str, address: str) -> None:
    page = f'<!DOCTYPE html><a href="rich-14.0.0-py3-none-any.whl">r</a><a class="x" href="{link}">r</a><a>'
    assert pytorch_pins.file_of("http://i/simple/rich/", page, "15.0.0") == address


def test_every_host_on_the_way_is_asked_and_named() -> None:
    asked = []

    def ask(url: str) -> Answer:
        asked.append(url)
        sends = {
            "https://a/x": "https://b/x",
            "https://b/x": "/y",
            "https://c/x": "https://c/x",
            "https://e/": "https://d/",
        }
        if url == "https://d/":
            raise OSError("Name or service not known")
        return Answer(302, {"location": sends[url]}) if url in sends else Answer(200, {"content-length": "7"})

    assert follow(ask, "https://a/x", "see").size == 7
    assert asked == ["https://a/x", "https://b/x", "https://b/y"]
    with pytest.raises(Unreachable, match=r"^d \(where e sends to\) cannot be reached for https://e/ \(Name or"):
        follow(ask, "https://e/", "see")
    with pytest.raises(Unreachable, match=r"^https://c/x is passed on more than 5 times, last to c: see\.$"):
        follow(ask, "https://c/x", "see")
    with pytest.raises(Unreachable, match=r"^h answers 403 for https://h/x: see\.$"):
        follow(lambda _: Answer(403, {}), "https://user:secret@h/x", "see")
