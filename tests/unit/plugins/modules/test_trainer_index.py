"""trainer_install with dependencies=index: real environments, a real pip, and an index of made-up packages."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pip
import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.pins import PLACE
from ansible_collections.gaudi3.scale.plugins.modules import trainer_install

Install = Callable[..., dict[str, Any]]


class Index:
    """A package index in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file://{folder}"

    def add(self, name: str, version: str, requires: str = "") -> str:
        """Put a package there; returns its pin with its hash."""
        file = self.folder / name.replace("_", "-") / f"{name}-{version}-py3-none-any.whl"
        wheel(file, name, version, [requires] if requires else [], {f"{name}.py": f"version = '{version}'\n"})
        page = file.with_name("index.html")
        link = f'<a href="{file.name}">{file.name}</a>\n'
        page.write_text((page.read_text() if page.exists() else "") + link)
        return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


def wheel(file: Path, name: str, version: str, requires: list[str], files: dict[str, str]) -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
        metadata += "".join(f"Requires-Dist: {each}\n" for each in requires)
        archive.writestr(zipfile.ZipInfo(f"{info}/METADATA"), metadata)
        marks = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(zipfile.ZipInfo(f"{info}/WHEEL"), marks)
        digest = base64.urlsafe_b64encode(hashlib.sha256(metadata.encode()).digest()).rstrip(b"=").decode()
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), f"{info}/METADATA,sha256={digest},\n")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "index")


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that has pip, `present` 1.0 and `kept` 1.0."""
    place = tmp_path_factory.mktemp("vendor")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    for name, version in (("pip", pip.__version__), ("present", "1.0"), ("kept", "1.0")):
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return str(place / "bin/python")


@pytest.fixture
def install(tmp_path: Path, index: Index, vendor: str, run_module: Any, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a trainer that requires made_up>=1 on a node, from the list of pins."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")

    def run(node: str, listed: str | None, requires: str = "made_up>=1", **options: Any) -> dict[str, Any]:
        trainer = tmp_path / "gaudi3_scale-0.0.1-py3-none-any.whl"
        files = {"gaudi3_scale/__init__.py": "", **({} if listed is None else {PLACE: listed})}
        wheel(trainer, "gaudi3_scale", "0.0.1", [requires], files)
        given = {"executable": vendor, "remote_src": True, "dependencies": "index", "index_url": index.url}
        result: dict[str, Any] = run_module(
            trainer_install, wheel=str(trainer), root=str(tmp_path / node), **{**given, **options}
        )
        return result

    return run


def versions(node: Path) -> list[str]:
    return sorted(path.name.partition(".dist")[0] for path in node.glob("venv/lib/python*/site-packages/*.dist-info"))


def test_nodes_at_different_times_get_equal_versions(tmp_path: Path, index: Index, install: Install) -> None:
    listed = index.add("helper", "1.0") + index.add("made_up", "1.0", "helper")
    assert install("first", listed)["done"] == ["venv", "dependencies", "trainer"]
    index.add("helper", "2.0")
    index.add("made_up", "2.0", "helper>=2")
    assert install("second", listed)["changed"] is True
    assert versions(tmp_path / "first") == versions(tmp_path / "second") == ["helper-1.0", "made_up-1.0"]
    assert install("second", listed)["changed"] is False
    # The list is read from the installed trainer where its packages are lost.
    (lost,) = (tmp_path / "second").glob("venv/lib/python*/site-packages/made_up-1.0.dist-info")
    shutil.rmtree(lost)
    assert install("second", listed)["done"] == ["dependencies"]
    assert versions(tmp_path / "second") == ["helper-1.0", "made_up-1.0"]
    # Also where a file is lost of a package that the trainer does not name itself.
    (lost,) = (tmp_path / "second").glob("venv/lib/python*/site-packages/helper-1.0.dist-info/METADATA")
    lost.unlink()
    assert install("second", listed)["done"] == ["dependencies"]
    assert lost.exists() and install("second", listed)["changed"] is False


def test_a_file_that_is_another_one_than_the_listed_is_refused(tmp_path: Path, index: Index, install: Install) -> None:
    listed = index.add("made_up", "1.0")
    file = tmp_path / "index/made-up/made_up-1.0-py3-none-any.whl"
    wheel(file, "made_up", "1.0", [], {"made_up.py": "import os\n"})
    assert install("node", listed)["msg"] == (
        "The package index has another file of made_up==1.0 than the trainer's list of pinned packages names: take "
        "an index with PyPI's files, or install what is missing and set trainer_dependencies to preinstalled."
    )
    assert versions(tmp_path / "node") == []


def test_what_was_there_is_replaced_only_where_it_will_not_do(tmp_path: Path, index: Index, install: Install) -> None:
    listed = index.add("made_up", "1.0", "present>=2") + index.add("present", "2.0") + index.add("kept", "2.0")
    assert install("node", listed)["changed"] is True
    assert versions(tmp_path / "node") == ["made_up-1.0", "present-2.0"]


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        (
            None,
            "The trainer in {wheel} has no gaudi3_scale/requirements.txt, by which trainer_dependencies=index "
            "installs: take a wheel of this collection's trainer, or install what it requires and set "
            "trainer_dependencies to preinstalled.",
        ),
        (
            "made_up==1.0\n",
            "gaudi3_scale/requirements.txt of the trainer's wheel has the line 'made_up==1.0': write each as "
            "name==version with --hash=sha256:..., and torch, which only the vendor may bring, not at all.",
        ),
        (
            f"torch==2.13.0 --hash=sha256:{'0' * 64}\n",
            "gaudi3_scale/requirements.txt of the trainer's wheel has the line 'torch==2.13.0 "
            "--hash=sha256:00000000000000000000000000000000': write each as name==version with --hash=sha256:..., and "
            "torch, which only the vendor may bring, not at all.",
        ),
        (
            f"other==1.0 --hash=sha256:{'0' * 64}\n",
            "gaudi3_scale/requirements.txt of the trainer's wheel has no made-up, which the trainer requires: install "
            "what is missing, and set trainer_dependencies to preinstalled.",
        ),
    ],
)
def test_a_list_that_will_not_do_is_refused(
    tmp_path: Path, install: Install, listed: str | None, sentence: str
) -> None:
    result = install("node", listed)
    assert result["msg"] == sentence.format(wheel=tmp_path / "gaudi3_scale-0.0.1-py3-none-any.whl")
    assert not (tmp_path / "node").exists()
