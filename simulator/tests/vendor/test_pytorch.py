"""The PyTorch tarball of the simulated repository, installed by its own install.sh with the real pip, offline."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError, nodes
from gaudi3_simulator.vendor import bytecode, container_image, pytorch

from .apt import served

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
PLUGIN = "habana_torch_plugin-1.23.0.695+gaudi3.simulator.egg-info/PKG-INFO"


def wheel(folder: Path, name: str, version: str, extra: dict[str, str] | None = None, text: str = "") -> Path:
    """A wheel of one module, small enough for a test."""
    files = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n{text}",
        f"{name}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    } | (extra or {})
    record = f"{name}-{version}.dist-info/RECORD"
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(each.encode()).digest()).rstrip(b'=').decode()},"
        f"{len(each)}\n"
        for path, each in files.items()
    ]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for where, each in (files | {record: "".join(rows) + f"{record},,\n"}).items():
            archive.writestr(zipfile.ZipInfo(where), each)  # of one moment, whenever it is made
    return path


class Shelf:
    """A folder to build in, with stand-ins for what is downloaded and for the simulated device."""

    def __init__(self, root: Path) -> None:
        self.dest = root / "vendor"
        self.gathered = 0
        (root / "device").mkdir(parents=True)
        metadata = "Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.23.0.695+gaudi3.simulator\n"
        made = wheel(root / "device", "gaudi3_hpu_simulator", "0.1.0", {PLUGIN: metadata})
        # As it is kept: pip would not take it under this name.
        self.device = made.rename(root / f"hpu-python{PYTHON}-0123456789abcdef.whl")

    def gather(self, folder: Path) -> None:
        self.gathered += 1
        wheel(folder, "torch", "2.13.0+cpu")
        wheel(folder, "filelock", "4.2.11")

    @staticmethod
    def compile(folder: Path) -> None:
        subprocess.run([sys.executable, bytecode.__file__, folder], check=True)

    def build(self, *releases: str, inputs: str = "one") -> list[Path]:
        return pytorch.build_shelf(self.dest, releases, PYTHON, self.device, self.gather, self.compile, inputs)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def unpacked(tarball: Path, folder: Path) -> Path:
    with tarfile.open(tarball) as archive:
        archive.extractall(folder, filter="data")
    return folder


def environment(folder: Path) -> dict[str, str]:
    """An active virtual environment; its pip is the one of the Python beneath."""
    base = Path(sys.base_prefix) / "bin/python3"
    subprocess.run([base, "-m", "venv", "--system-site-packages", "--without-pip", folder], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    offline = {f"{each}_proxy": "http://127.0.0.1:9" for each in ("http", "https")}
    return {**kept, **offline, "VIRTUAL_ENV": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def install(folder: Path, active: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./install.sh", *arguments], cwd=folder, env=active, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("1.22.0-740", "2.7.1_1.22.0_740"),
        ("1.23.0-695", "2.9.0_1.23.0_695"),
        ("1.24.0-1007", "2.10.0_1.24.0_1007"),
        ("1.24.1-482", "2.11.0_1.24.1_482"),
        ("1.20.1-97", "2.6.0_1.20.1_97"),
    ],
)
def test_names_and_folders_are_the_vendors(shelf: Shelf, release: str, name: str) -> None:
    number, _, build = release.partition("-")
    base = shelf.dest / "artifactory/gaudi-pt-modules" / number / build / "pytorch"
    built = shelf.build(release)
    assert built == [base / system / f"pytorch_modules-v{name}.tgz" for system in pytorch.systems(release)]
    assert len({path.stat().st_ino for path in built}) == 1 < len(built), (
        "one file serves every system of the same Python"
    )


def test_a_release_is_there_for_the_systems_of_its_support_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "collections"))
    matrix = import_module("ansible_collections.gaudi3.scale.plugins.module_utils._release.support_matrix")
    compared = [release for release in matrix.known_releases() if release in pytorch.offered()]
    assert len(compared) > 10
    for release in compared:
        (line,) = (line for line in matrix.LINES if release in line.releases)
        folders = {
            name.lower().replace("redhat", "rhel").translate(str.maketrans("", "", ". ")) for name in line.systems
        }
        assert line.torch == pytorch.torch_version(release)
        assert set(pytorch.systems(release)) == folders, release
        assert [name.replace(".", "") for name in container_image.systems(release)] == list(pytorch.systems(release))


@pytest.mark.parametrize("release", ["1.24.2-481", "9.9.9-1", "1.23.0-696"])
def test_a_release_without_a_public_torch_version_has_no_tarball(shelf: Shelf, release: str) -> None:
    with pytest.raises(SimulatorError, match=rf"^.*{release}.*: give one of 1\.15\.1-15, .*1\.24\.1-482\.$"):
        shelf.build("1.23.0-695", release)
    assert not (shelf.dest / "artifactory").exists()


@pytest.mark.parametrize(("release", "kind"), [("1.23.0-695", "fork"), ("1.24.1-482", "public")])
def test_it_installs_offline_into_the_active_environment_and_says_what_it_holds(
    shelf: Shelf, tmp_path: Path, release: str, kind: str
) -> None:
    number, _, build = release.partition("-")
    folder = unpacked(shelf.build(release)[0], tmp_path / "unpacked")
    active = environment(tmp_path / "venv")
    done = install(folder, active, number, build, kind)
    assert done.returncode == 0, done.stderr
    program = (
        "import importlib.metadata as m, torch; print(torch.__file__); "
        "print(*(m.version(n) for n in ('torch', 'gaudi3-hpu-simulator', 'habana-torch-plugin', 'filelock')))"
    )
    shown = subprocess.run(["python3", "-c", program], env=active, capture_output=True, text=True, check=True).stdout
    where, versions = shown.splitlines()
    assert where.startswith(str(tmp_path / "venv"))
    assert versions == f"2.13.0+cpu 0.1.0 {number}.{build}+gaudi3.simulator 4.2.11"
    # `pip check` and an uninstall go by the wheel's RECORD, which names what is there.
    again = ["python3", "-m", "pip", "uninstall", "-q", "-y", "gaudi3-hpu-simulator"]
    subprocess.run(again, env=active, capture_output=True, check=True)
    assert not list((tmp_path / "venv").rglob("*habana_torch_plugin*"))
    for text in (done.stdout, (folder / "README").read_text()):
        assert "simulated" in text
        assert "torch 2.13.0+cpu" in text
        assert f"not PyTorch {pytorch.torch_version(release)} of release {release}" in text


def test_the_wheels_bring_their_bytecode_and_an_edit_on_a_node_counts(shelf: Shelf, tmp_path: Path) -> None:
    folder = unpacked(shelf.build("1.23.0-695")[0], tmp_path / "unpacked")
    (tmp_path / "pip.conf").write_text(bytecode.PIP_CONF)
    active = {**environment(tmp_path / "venv"), "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    assert install(folder, active, "1.23.0", "695", "fork").returncode == 0
    found = sorted((tmp_path / "venv").rglob("*.pyc"))
    assert [path.parts[-3] for path in found] == ["filelock", "gaudi3_hpu_simulator", "torch"]
    before = found[-1].read_bytes()

    def version() -> str:
        asked = ["python3", "-B", "-c", "import torch; print(torch.__version__)"]
        return subprocess.run(asked, env=active, capture_output=True, text=True, check=True).stdout.strip()

    assert version() == "2.13.0+cpu"
    (found[-1].parent.parent / "__init__.py").write_text("__version__ = 'edited'\n")
    assert version() == "edited"
    assert found[-1].read_bytes() == before
    again = ["python3", "-m", "pip", "uninstall", "-q", "-y", "torch"]
    subprocess.run(again, env=active, capture_output=True, check=True)
    assert not list((tmp_path / "venv").rglob("torch/*"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "usage: ./install.sh RELEASE BUILD fork|public"),
        (("1.23.0", "695"), "usage: ./install.sh RELEASE BUILD fork|public"),
        (("1.23.0", "695", "upstream"), "The third argument was upstream: give fork or public."),
        (("1.22.0", "740", "fork"), "Release 1.22.0 build 740 was asked for, this tarball is of 1.23.0 build 695."),
        (("1.23.0", "696", "fork"), "Release 1.23.0 build 696 was asked for, this tarball is of 1.23.0 build 695."),
    ],
)
def test_wrong_arguments_install_nothing(
    shelf: Shelf, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    folder = unpacked(shelf.build("1.23.0-695")[0], tmp_path / "unpacked")
    active = environment(tmp_path / "venv")
    done = install(folder, active, *arguments)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert not list((tmp_path / "venv").rglob("*torch*"))


@pytest.mark.parametrize("wrong", ["python", "pip", "wheel"])
def test_what_it_cannot_install_with_is_named(shelf: Shelf, tmp_path: Path, wrong: str) -> None:
    folder = unpacked(shelf.build("1.23.0-695")[0], tmp_path / "unpacked")
    active = environment(tmp_path / "venv")
    if wrong == "python":
        (folder / "python").write_text("3.8\n")
    elif wrong == "pip":
        settings = tmp_path / "venv/pyvenv.cfg"
        settings.write_text(settings.read_text().replace("packages = true", "packages = false"))
    else:
        wheel(folder / "wheels", "torch", "2.13.0+cpu", text="tampered = True\n")
    done = install(folder, active, "1.23.0", "695", "fork")
    assert done.returncode != 0
    assert {
        "python": f"The wheels are for Python 3.8, python3 is {PYTHON}",
        "pip": "python3 has no pip",
        "wheel": "DO NOT MATCH THE HASHES",
    }[wrong] in done.stderr


def test_it_is_built_once_and_anew_when_its_inputs_change(shelf: Shelf) -> None:
    first, *_ = shelf.build("1.23.0-695")
    before = (first.stat().st_mtime_ns, first.stat().st_ino)
    shelf.build("1.23.0-695")
    assert (first.stat().st_mtime_ns, first.stat().st_ino) == before
    shelf.build("1.23.0-695", "1.24.0-1007")
    assert (first.stat().st_mtime_ns, first.stat().st_ino) == before
    assert shelf.gathered == 2
    content = first.read_bytes()
    shelf.build("1.23.0-695", inputs="two")
    assert shelf.gathered == 3
    assert first.stat().st_ino != before[1]
    assert first.read_bytes() == content, "equal contents give equal bytes"
    first.unlink()
    shelf.build("1.23.0-695", inputs="two")
    assert first.exists()


def test_the_tarball_comes_from_the_storage_host_too(tmp_path: Path) -> None:
    name = "artifactory/gaudi-pt-modules/1.23.0/695/pytorch/rhel94/pytorch_modules-v2.9.0_1.23.0_695.tgz"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("tarball")
    # As the vault is started, but for the host's name, which no server of names knows here.
    _, *whole = nodes.storage_arguments()
    with served(tmp_path, "localhost", whole == ["whole"]) as port:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}")
        assert (answer.url, answer.read()) == (f"http://localhost:{port}/{name}", b"tarball")
