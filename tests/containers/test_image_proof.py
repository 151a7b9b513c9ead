"""The trainer's image, built by podman on a base that has this machine's Python and nothing else, and run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pip

from containers import build
from tests.suite.proof import Proof
from tests.walks.markdown import all_blocks

CASE = "built twice on a base without PyTorch, and run"
#: The vendor's image is not here.
PROOF = Proof("image", {"image": [CASE]}, sample=["no case"])
TAG = "localhost/trainer:1"
PYTHON = Path(os.path.realpath(sys.executable))


def _base(folder: Path) -> None:
    """A root folder with Python, a shell, and what these load."""
    library = Path(sysconfig.get_paths()["stdlib"])
    programs = [PYTHON, Path("/bin/sh"), *library.glob("lib-dynload/*.so")]
    found = {Path(os.path.realpath("/bin/sh")), Path("/bin/sh"), PYTHON}
    for program in programs:
        loaded = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
        found |= {Path(word) for word in loaded.split() if word.startswith("/")}
    for path in found:
        place = folder / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(path), place)
    unused = shutil.ignore_patterns("__pycache__", "test", "idlelib", "tkinter", "site-packages", "EXTERNALLY-MANAGED")
    shutil.copytree(library, folder / library.relative_to("/"), dirs_exist_ok=True, ignore=unused)
    # Debian's own Python has its packages there, and another one looks below its library.
    debian = library == Path("/usr/lib") / library.name
    packages = folder / ("usr/lib/python3/dist-packages" if debian else library.relative_to("/") / "site-packages")
    packages.mkdir(parents=True)
    own = Path(pip.__file__).parent
    for each in (own, *own.parent.glob("pip-*.dist-info")):
        shutil.copytree(each, packages / each.name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "usr/bin").mkdir(exist_ok=True, parents=True)
    (folder / "usr/bin/python3").symlink_to(PYTHON)
    (folder / "tmp").mkdir(mode=0o1777)
    (folder / "tmp").chmod(0o1777)


def _page() -> dict[str, str]:
    """The options that image.md gives to the build."""
    (command,) = (
        line
        for block in all_blocks()["docs/use/image.md"]
        for line in block.code.splitlines()
        if line.startswith("make image-trainer BASE=VENDOR_IMAGE")
    )
    given = dict(word.split("=", 1) for word in command.split()[2:])
    return {f"--{name.lower()}": value for name, value in given.items()}


def _podman(folder: Path) -> list[str]:
    """Podman with images of its own."""
    return ["podman", f"--root={folder}/graph", f"--runroot={folder}/run", "--storage-driver=vfs"]


@PROOF.sampled(CASE)
def test_an_image_is_built_and_its_record_is_kept(tmp_path: Path) -> None:
    PROOF.skip_if_held(CASE)
    if not shutil.which("podman"):
        PROOF.cannot_run(CASE, "podman is not installed")
    # Podman takes no longer path.
    place = Path(tempfile.mkdtemp(prefix="image-", dir="/tmp"))
    podman, output = _podman(place), tmp_path / "out"
    try:
        _base(tmp_path / "root")
        subprocess.run(["tar", "-C", str(tmp_path / "root"), "-cf", str(tmp_path / "base.tar"), "."], check=True)
        subprocess.run([*podman, "import", "--quiet", str(tmp_path / "base.tar"), "localhost/base:1"], check=True)
        shown = [*podman, "image", "inspect", "--format", "{{.Digest}}", "localhost/base:1"]
        base = f"localhost/base:1@{subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip()}"
        (tmp_path / "nothing.txt").touch()
        given = [each for option in _page().items() for each in option]
        given = [
            {"VENDOR_IMAGE@DIGEST": base, "registry.example/gaudi3-train:1": TAG}.get(each, each) for each in given
        ]
        given += [
            "--engine",
            " ".join(podman),
            "--output",
            str(output),
            "--requirements",
            str(tmp_path / "nothing.txt"),
            "--index",
            "http://me:hidden-word@127.0.0.1:1/simple",
        ]
        assert build.main(given) == 0
        record = json.loads((output / "image.json").read_text())
        bill = (output / "sbom.cdx.json").read_bytes()
        assert (record["base"], record["sbom_sha256"]) == (base, hashlib.sha256(bill).hexdigest())
        for shown in (["history", "--no-trunc", TAG], ["image", "inspect", TAG]):
            said = subprocess.run([*podman, *shown], capture_output=True, text=True, check=True).stdout
            assert "/build/install.py" in said and "hidden-word" not in said
        assert (
            subprocess.run(["grep", "-rlI", "hidden-word", str(place)], check=False, capture_output=True).stdout == b""
        )
        names = [each["name"] for each in json.loads(bill)["components"]]
        assert names == ["gaudi3-scale", "pip"]
        says = "import importlib.metadata as m, os; print(os.getuid(), m.version('gaudi3-scale'))"
        runs = [*podman, "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
        command = [*runs, "--entrypoint=python3", TAG, "-c", says]
        ran = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert ran == f"10001 {record['version']}\n"
        assert build.main(given) == 0
        assert (output / "sbom.cdx.json").read_bytes() == bill
        PROOF.note(CASE, {"user": "10001", "parts": ", ".join(names)})
    finally:
        subprocess.run([*podman, "rmi", "--all", "--force"], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)
