"""trainer_wheel and trainer_install, with real virtual environments and a made-up trainer."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._trainer import env as trainer_env
from ansible_collections.gaudi3.scale.plugins.modules import trainer_install, trainer_wheel

PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "gaudi3-scale"
version = "{version}"
requires-python = ">=3.9"
dependencies = {dependencies}
[project.scripts]
gaudi3-train = "gaudi3_scale.cli:main"
[tool.hatch.build.targets.wheel]
packages = ["src/gaudi3_scale"]
"""


def sources(
    folder: Path, version: str = "0.0.1", dependencies: str = '["pytest>=1"]', code: str = "", listed: str = ""
) -> Path:
    """The sources of a trainer which prints its version, and nothing else."""
    package = folder / "src/gaudi3_scale"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PYPROJECT.format(version=version, dependencies=dependencies))
    (package / "__init__.py").write_text(code)
    (package / "cli.py").write_text(f"def main():\n    print('trainer {version}')\n")
    (package / "requirements.txt").write_text(listed)
    return folder


class Site:
    """A controller's cache and a node's folder."""

    def __init__(self, folder: Path, run_module: Any) -> None:
        self.folder = folder
        self._run = run_module

    def build(self, **options: Any) -> dict[str, Any]:
        options = {"source": str(self.folder / "source"), "executable": sys.executable, **options}
        result: dict[str, Any] = self._run(trainer_wheel, cache_dir=str(self.folder / "cache"), **options)
        return result

    def install(self, wheel: str, **options: Any) -> dict[str, Any]:
        options = {"executable": sys.executable, "remote_src": True, **options}
        result: dict[str, Any] = self._run(trainer_install, wheel=wheel, root=str(self.folder / "node"), **options)
        return result

    def train(self) -> str:
        return subprocess.run(
            [self.folder / "node/venv/bin/gaudi3-train"], check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
def site(tmp_path: Path, run_module: Any) -> Site:
    sources(tmp_path / "source")
    return Site(tmp_path, run_module)


def test_build_once(site: Site) -> None:
    first, second = site.build(), site.build()
    assert (first["built"], second["built"]) == (True, False)
    assert first["changed"] is second["changed"] is False
    assert first["version"] == "0.0.1"
    assert Path(first["path"]).name == "gaudi3_scale-0.0.1-py3-none-any.whl"
    assert {key: first[key] for key in ("path", "sha256")} == {key: second[key] for key in ("path", "sha256")}
    assert {path.name for path in (site.folder / "source").iterdir()} == {"pyproject.toml", "src"}
    assert [path.name for path in (site.folder / "cache").iterdir()] == [Path(first["path"]).parent.name]


def test_equal_sources_make_equal_wheels(site: Site) -> None:
    first = site.build()
    Path(first["path"]).unlink()
    Path(first["path"]).parent.rmdir()
    assert site.build()["sha256"] == first["sha256"]
    # Nor is one taken from the cache that a power cut left empty.
    Path(first["path"]).write_bytes(b"")
    again = site.build()
    assert (again["built"], again["sha256"]) == (True, first["sha256"])


def test_changed_sources_are_built_anew(site: Site) -> None:
    first = site.build()
    sources(site.folder / "source", "0.0.2")
    second = site.build()
    assert second["built"] is True and second["version"] == "0.0.2"
    assert Path(first["path"]).exists()


def test_built_in_check_mode_too(site: Site) -> None:
    assert Path(site.build(check=True)["path"]).exists()


def test_a_given_wheel_is_taken_as_it_is(site: Site) -> None:
    wheel = site.build()["path"]
    again = site.build(wheel=wheel, source="/not/there")
    assert (again["path"], again["built"]) == (wheel, False)


def test_no_sources(site: Site) -> None:
    result = site.build(source="/not/there")
    assert result["msg"] == (
        "/not/there on the controller has no pyproject.toml: set trainer_source to the folder of the trainer's "
        "sources, or trainer_wheel to a wheel that is built already."
    )


def test_no_hatchling(site: Site) -> None:
    bare = site.folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    result = site.build(executable=str(bare / "bin/python"))
    assert result["msg"] == (
        f"The trainer's wheel cannot be built, as {bare}/bin/python on the controller has no package hatchling: "
        "install it there (pip install hatchling), or set trainer_wheel to a wheel that is built already."
    )
    assert list((site.folder / "cache").iterdir()) == []


def test_install(site: Site) -> None:
    wheel = site.build()["path"]
    first = site.install(wheel)
    assert (first["changed"], first["done"]) == (True, ["venv", "trainer"])
    assert first["venv"] == str(site.folder / "node/venv")
    assert site.train() == "trainer 0.0.1\n"
    assert list(Path(first["folder"]).glob("gaudi3_scale/__pycache__/cli.*.pyc"))
    second = site.install(wheel)
    assert (second["changed"], second["done"]) == (False, [])


def test_check_mode_tells_and_does_nothing(site: Site) -> None:
    wheel = site.build()["path"]
    result = site.install(wheel, check=True)
    assert (result["changed"], result["done"]) == (True, ["venv", "trainer"])
    assert not (site.folder / "node").exists()
    site.install(wheel)
    assert site.install(wheel, check=True)["changed"] is False


def test_upgrade_leaves_the_version_of_running_jobs(site: Site) -> None:
    old = site.install(site.build()["path"])["folder"]
    sources(site.folder / "source", "0.0.2")
    result = site.install(site.build()["path"])
    assert (result["changed"], result["done"]) == (True, ["trainer"])
    assert result["diff"] == {"before": f"trainer: {old}\n", "after": f"trainer: {result['folder']}\n"}
    assert site.train() == "trainer 0.0.2\n"
    assert (Path(old) / "gaudi3_scale/cli.py").exists()


def test_an_upgrade_that_cannot_be_imported_leaves_the_old_one(site: Site) -> None:
    site.install(site.build()["path"])
    sources(site.folder / "source", "0.0.2", code="import not_there_at_all")
    result = site.install(site.build()["path"])
    assert result["msg"] == (
        "The trainer cannot be imported on this node: ModuleNotFoundError: No module named 'not_there_at_all'."
    )
    assert site.train() == "trainer 0.0.1\n"


@pytest.mark.parametrize("name", ["gaudi3_scale/cli.py", "gaudi3_scale-0.0.1.dist-info/RECORD"])
def test_a_file_that_a_power_cut_emptied_is_mended(site: Site, name: str) -> None:
    wheel = site.build()["path"]
    folder = Path(site.install(wheel)["folder"])
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(b"")
    again = site.install(wheel)
    assert (again["changed"], again["done"]) == (True, ["trainer"])
    assert (folder / name).read_bytes() == whole
    assert site.install(wheel)["changed"] is False


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.chmod(0o644), lambda path: path.write_text("x")])
def test_a_command_that_was_harmed_is_written_again(site: Site, harm: Callable[[Path], object]) -> None:
    """Without it no job starts."""
    wheel = site.build()["path"]
    command = Path(site.install(wheel)["venv"], "bin/gaudi3-train")
    harm(command)
    assert site.install(wheel)["done"] == ["trainer"] and site.train() == "trainer 0.0.1\n"
    assert site.install(wheel)["changed"] is False


def test_what_was_unpacked_is_on_the_disk_before_it_gets_its_name(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    fsync, rename = os.fsync, os.rename

    def noted(handle: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def renamed(old: str, new: str, **options: Any) -> None:
        if "/.draft-" in old:
            files = {str(path) for path in Path(old).rglob("*")}
            assert any(path.endswith(".pyc") for path in files) and files <= synced
        rename(old, new, **options)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "rename", renamed)
    assert site.install(site.build()["path"])["changed"] is True
    assert any("/.draft-" in path for path in synced)


def test_an_environment_that_was_not_finished_is_finished(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real = trainer_env.write_file

    def cut(path: str, *rest: Any) -> None:
        if "/venv/" in path:
            raise OSError("power cut")
        real(path, *rest)

    wheel = site.build()["path"]
    monkeypatch.setattr(trainer_env, "write_file", cut)
    with pytest.raises(OSError, match="power cut"):
        site.install(wheel)
    monkeypatch.undo()
    assert "venv" in site.install(wheel)["done"]
    assert site.train() == "trainer 0.0.1\n"


def test_the_wheel_is_asked_for_only_when_needed(site: Site) -> None:
    wheel = site.build()["path"]
    known = {"sha256": site.build()["sha256"], "requirements": ["pytest>=1"], "remote_src": False}
    result = site.install("/on/the/controller.whl", **known)
    assert (result["needs_wheel"], result["changed"]) == (True, False)
    assert not (site.folder / "node").exists()
    site.install(wheel)
    assert "needs_wheel" not in site.install("/on/the/controller.whl", **known)


@pytest.mark.parametrize(
    ("dependencies", "options", "sentence"),
    [
        (
            '["pytest>=1", "not-there-at-all>=2"]',
            {},
            "The trainer needs not-there-at-all>=2 (missing) for {python}: install them, or set trainer_dependencies "
            "to index to have them installed from a package index.",
        ),
        (
            '["torch>=99"]',
            {"dependencies": "index"},
            "The trainer needs torch>=99 ({torch}) for {python}, and PyTorch comes with role pytorch or the node's "
            "image, never from an index: run the phase pytorch, or set trainer_python to the Python that has it.",
        ),
    ],
)
def test_what_is_missing_is_told_before_anything_changes(
    dependencies: str, options: dict[str, Any], sentence: str, site: Site
) -> None:
    from importlib.metadata import version

    sources(site.folder / "source", dependencies=dependencies)
    result = site.install(site.build()["path"], **options)
    assert result["msg"] == sentence.format(python=sys.executable, torch="found " + version("torch"))
    assert not (site.folder / "node").exists()


def test_a_python_that_is_too_old(site: Site) -> None:
    known = {"sha256": "0" * 64, "requirements": [], "requires_python": ">=4"}
    result = site.install("/a.whl", **known)
    version = ".".join(str(part) for part in sys.version_info[:3])
    assert result["msg"] == (
        f"The trainer needs Python >=4, but {sys.executable} is {version}: set trainer_python to another one."
    )


def test_a_python_that_is_not_there(site: Site) -> None:
    result = site.install(site.build()["path"], executable="/not/there")
    assert result["msg"].startswith("/not/there does not run on this node: ")
    assert result["msg"].endswith("; set trainer_python to a Python that does.")


def test_what_is_missing_is_installed_from_the_index(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = f"not-there-at-all==2.1 --hash=sha256:{'0' * 64}"
    sources(site.folder / "source", dependencies='["pytest>=1", "not-there-at-all>=2"]', listed=f"# Pins.\n{pin}\n")
    asked: list[tuple[list[str], dict[str, str], list[str]]] = []
    env = trainer_install.TrainerEnv
    monkeypatch.setattr(
        env,
        "install_from_index",
        lambda _self, *given: asked.append((*given[:2], [pin.line for pin in given[2].values()])),
    )
    result = site.install(site.build()["path"], dependencies="index", index_url="https://me@index.example/simple")
    assert (result["changed"], result["done"]) == (True, ["venv", "dependencies", "trainer"])
    assert asked == [(["not-there-at-all>=2"], {"PIP_INDEX_URL": "https://me@index.example/simple"}, [pin])]
    plain = site.install(site.build()["path"], dependencies="index", index_url="http://me@index.example/simple")
    assert plain["msg"].startswith("trainer_pip_index_url is a plain http address on index.example: give an https")


def test_packages_of_an_environment_are_seen_through_ours(site: Site) -> None:
    """Under the name of a link, as the vendor's PyTorch is, and with folders that a .pth file in it names."""
    made, base = site.folder / "torch-1.23.0-695", site.folder / "torch"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    base.symlink_to(made.name)
    (package,) = base.glob("lib/python*/site-packages")
    (package / "vendor_torch.py").write_text("")
    (site.folder / "graph").mkdir()
    (site.folder / "graph/vendor_graph.py").write_text("")
    (package / "graph.pth").write_text(f"{site.folder}/graph\n")
    info = package / "vendor_torch-2.9.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-torch\nVersion: 2.9.0\n")
    python = str(base / "bin/python")
    # An environment that was made with another Python is not kept.
    sources(site.folder / "source", dependencies="[]")
    site.install(site.build()["path"])
    sources(site.folder / "source", dependencies='["vendor-torch>=2.9"]', code="import vendor_torch, vendor_graph")
    wheel = site.build()["path"]
    assert site.install(wheel)["msg"].startswith(f"The trainer needs vendor-torch>=2.9 (missing) for {sys.executable}:")
    assert site.install(wheel, executable=python)["done"] == ["venv", "trainer"]
    assert site.train() == "trainer 0.0.1\n"
    assert site.install(wheel, executable=python)["changed"] is False
    # Another release's environment behind the link.
    made.rename(site.folder / "torch-1.24.0-1007")
    base.unlink()
    base.symlink_to("torch-1.24.0-1007")
    assert site.install(wheel, executable=python)["changed"] is False
    assert site.train() == "trainer 0.0.1\n"


def test_a_python_that_comes_later(site: Site) -> None:
    wheel = site.build()["path"]
    later = {"executable": "/not/there/yet", "allow_missing": True}
    assert site.install(wheel, check=True, **later)["done"] == ["venv", "trainer"]
    assert not (site.folder / "node").exists()
    assert site.install(wheel, **later)["msg"].startswith("/not/there/yet does not run on this node: ")


def test_an_environment_in_a_closed_home_is_refused_by_its_path(site: Site) -> None:
    place = Path(tempfile.mkdtemp(prefix="gaudi3-home-"))
    place.chmod(0o755)
    try:
        home = place / "user"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "habanalabs-venv"], check=True)
        python = home / "habanalabs-venv/bin/python"
        wheel = sources(site.folder / "source", dependencies="[]") and site.build()["path"]
        home.chmod(0o750)
        for check in (True, False):
            result = site.install(wheel, executable=str(python), user="nobody", check=check)
            assert result["msg"] == (
                f"nobody cannot reach {python}, as {home} (mode 0750) is closed to it: make the environment in a "
                "folder that all may enter, such as below /opt, or set trainer_python to another Python."
            )
        assert not (site.folder / "node").exists()
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("imports", [["torch"], ["torch", "habana_frameworks.torch"]])
def test_what_the_jobs_user_cannot_import_stops_the_installation_each_time(
    site: Site, imports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is not the current one before, so that a second run does not pass."""
    log = site.folder / "asked"
    setpriv = site.folder / "setpriv"
    setpriv.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n'
        'echo "ModuleNotFoundError: no $7, $TORCH_DEVICE_BACKEND_AUTOLOAD" >&2\nexit 1\n'
    )
    setpriv.chmod(0o755)
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda _self, name, required: str(site.folder / name))
    monkeypatch.setattr(trainer_env, "first_closed", lambda path, uid, gids: None)
    wheel = sources(site.folder / "source", dependencies="[]") and site.build()["path"]
    for _ in range(2):
        result = site.install(wheel, user="nobody", imports=imports)
        assert result["msg"].startswith(
            f"nobody cannot import {', '.join(imports)} with {sys.executable} on this node: ModuleNotFoundError"
        )
        assert result["msg"].endswith(", 0."), "torch does not load the plugin, whose reason is to be told"
    nobody = pwd.getpwnam("nobody")
    identity = f"--reuid={nobody.pw_uid} --regid={nobody.pw_gid} --init-groups"
    words = f"{identity} -- {site.folder}/node/venv/bin/python -I -c import {', '.join(imports)}\n"
    assert log.read_text() == words * 2
    setpriv.write_text("#!/bin/sh\n")
    assert site.install(wheel, user="nobody", imports=imports)["done"] == ["trainer"]


def test_a_script_that_would_write_elsewhere_is_refused(site: Site) -> None:
    wheel = Path(site.build()["path"])
    bad = site.folder / "bad.whl"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(bad, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            new.writestr(name, text.replace(b"gaudi3-train =", b"../evil =") if "entry_points" in name else text)
    result = site.install(str(bad))
    assert result["msg"] == (
        "The wheel's script ../evil = gaudi3_scale.cli:main cannot be installed: it is not module:function."
    )
