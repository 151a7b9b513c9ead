"""gaudi_pytorch with real virtual environments and pip, on stand-ins for the vendor's wheels."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._installed import alone
from ansible_collections.gaudi3.scale.plugins.module_utils._pytorch import env as pytorch_env
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_pytorch
from tests.stand_in_pytorch import PYTHON, RELEASE, TORCH, Vendor, wheel

BASE = str(Path(sys.base_prefix) / "bin/python3")
PLUGIN = "1.23.0.695+gaudi3.simulator"
TARBALL = "1.23.0/695/pytorch/ubuntu2404/pytorch_modules-v2.9.0_1.23.0_695.tgz"


class Node:
    """A node's folder, and the module on it."""

    def __init__(self, folder: Path, run_module: Any, address: str, pins: list[str]) -> None:
        self.root = folder / "node"
        self._run = run_module
        self.options: dict[str, Any] = {
            "release": RELEASE, "system": "ubuntu2404", "distribution": "Debian 12", "executable": BASE,
            "pythons": [PYTHON], "repository_url": f"{address}/artifactory/gaudi-pt-modules", "requirements": pins,
            "index_url": f"{address}/pypi/simple", "root": str(self.root), "user": getpass.getuser(),
        }  # fmt: skip

    def install(self, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._run(gaudi_pytorch, **{**self.options, **more})
        return result

    def versions(self) -> dict[str, str]:
        """What a job would have."""
        told = subprocess.run([self.root / "torch/bin/python", "-I", "-c", pytorch_env.PROBE], capture_output=True)
        return dict(json.loads(told.stdout)["distributions"])

    def files(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir()) if self.root.exists() else []


@pytest.fixture
def vendor(tmp_path: Path) -> Vendor:
    made = Vendor(tmp_path)
    made.tarballs()
    return made


@pytest.fixture
def node(tmp_path: Path, vendor: Vendor, run_module: Any) -> Iterator[Node]:
    pins = vendor.offer_usual()
    with vendor.served() as address:
        yield Node(tmp_path, run_module, address, pins)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments with the pip of the Python beneath, which are made at once."""

    def make(self: pytorch_env.PytorchEnv, python: str) -> None:
        self.run_or_fail(
            [python, "-m", "venv", "--clear", "--without-pip", "--system-site-packages", self.folder], "venv"
        )

    monkeypatch.setattr(pytorch_env.PytorchEnv, "make", make)


@pytest.mark.usefixtures("quick")
def test_the_vendors_torch_and_nothing_but_the_list(node: Node, vendor: Vendor) -> None:
    predicted = node.install(check=True)
    assert (predicted["changed"], predicted["done"], node.files()) == (True, ["pytorch", "requirements", "link"], [])
    first = node.install()
    assert first.get("done") == predicted["done"], first
    assert first["python"] == f"{node.root}/torch/bin/python"
    assert (first["torch"], first["plugin"], first["tarball"]) == (TORCH, PLUGIN, TARBALL)
    assert node.files() == ["pytorch-tarballs.json", "torch", "torch-1.23.0-695"]
    have = node.versions()
    # lightning asks for another torch and filelock, which the index has: neither came.
    assert (have["torch"], have["filelock"]) == (TORCH, "4.2.11")
    assert (have["lightning"], have["rich"]) == ("2.6.6", "15.0.0")
    assert first["diff"]["before"] == "no environment in use\ntorch absent\n"
    assert first["diff"]["after"].splitlines()[:2] == ["torch-1.23.0-695", "pytorch_modules-v2.9.0_1.23.0_695.tgz"]
    (page,) = (node.root / "torch/lib").glob("*/site-packages/habanalabs-graph.pth")
    assert page.read_text() == "/usr/lib/habanalabs\n"
    assert [each.st_mode & 0o7 for each in map(os.stat, (node.root, node.root / "torch/bin", page))] == [5, 5, 4]

    # Nobody is asked any more, and nothing is done.
    offline = {"repository_url": "http://127.0.0.1:9", "index_url": "http://127.0.0.1:9"}
    for check in (True, False):
        again = node.install(check=check, **offline)
        assert (again["changed"], again["done"], again["sha256"]) == (False, [], first["sha256"]), again

    # Another Python than the environment's is not passed over in silence.
    absent = node.install(executable="/not/there", **offline)
    assert absent["msg"].startswith("pytorch_python is /not/there, which is not on this node: install it"), absent
    other = shutil.copy("/bin/true", node.root.parent / "python3.8")
    assert node.install(executable=str(other), **offline)["msg"] == (
        f"{node.root}/torch-1.23.0-695 was made with Python {PYTHON}, but pytorch_python is {other}, Python 3.8: set "
        f"pytorch_python to a Python {PYTHON}, or remove {node.root}/torch-1.23.0-695 to have it installed again with "
        f"{other}."
    )

    # What the list brought follows it, what the tarball brought does not.
    pins = [*vendor.offer_usual()[:3], vendor.offer("rich", "15.1.0")]
    newer = node.install(requirements=pins)
    assert newer["done"] == ["requirements"]
    assert newer["diff"]["after"].splitlines()[2:] == ["rich==15.1.0"]
    assert (node.versions()["rich"], node.versions()["filelock"]) == ("15.1.0", "4.2.11")

    # A power cut leaves files of the list's packages empty: those packages alone come again.
    (rich,) = (node.root / "torch/lib").glob("*/site-packages/rich/__init__.py")
    for emptied in (rich, *rich.parents[1].glob("rich-*/METADATA")):
        emptied.write_text("")
    assert node.install(requirements=pins)["done"] == ["requirements"]
    assert rich.read_text() and node.versions()["rich"] == "15.1.0"

    # Another run that is installing keeps this one out, which changes nothing.
    (torch,) = (node.root / "torch/lib").glob("*/site-packages/torch/__init__.py")
    torch.write_text("")
    with alone(str(node.root)):
        assert node.install(requirements=pins)["msg"] == (
            f"Another run is installing below {node.root} on this node: wait until it has ended, and run the play "
            "again."
        )
    # An empty file of the vendor's packages: the environment is made anew.
    assert torch.read_text() == ""
    assert node.install(requirements=pins)["done"] == ["pytorch", "requirements"]
    (torch,) = (node.root / "torch/lib").glob("*/site-packages/torch/__init__.py")
    assert torch.read_text()

    # A release that does harm is not used, whoever brought it.
    about = torch.parents[1] / "lightning-2.6.6.dist-info/METADATA"
    about.write_text(about.read_text().replace("Version: 2.6.6", "Version: 2.6.3"))
    told = (
        f"{node.root}/torch-1.23.0-695/bin/python has lightning 2.6.3, which steals credentials as soon as it is "
        "imported (GHSA-w37p-236h-pfx3, 2026-04-30): remove it, replace every credential that this machine could read, "
        "and install lightning==2.6.6."
    )
    preinstalled = {"state": "preinstalled", "executable": f"{node.root}/torch-1.23.0-695/bin/python"}
    for options in ({}, preinstalled):
        assert node.install(requirements=pins, **options)["msg"] == told
    about.write_text(about.read_text().replace("Version: 2.6.3", "Version: 2.6.6"))

    pinned = node.install(sha256="0" * 64)
    assert pinned["msg"].startswith(f"{node.root}/torch-1.23.0-695 was installed of a tarball with SHA-256 ")

    # An upstream torch over it is no longer what was installed.
    pip = [
        str(node.root / "torch/bin/python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
    ]
    subprocess.run([*pip, str(wheel(node.root, "torch", "2.13.0"))], check=True)
    assert node.install(check=True)["done"] == ["pytorch", "requirements"]
    assert "torch 2.13.0" in node.install(check=True)["diff"]["before"]

    # The file of that name is not the one of the first time.
    vendor.torch_text = "changed = True\n"
    vendor.tarballs()
    refused = node.install()
    assert f"not {first['sha256']} as its first installation on this node says" in refused["msg"]


@pytest.mark.usefixtures("quick")
def test_a_tampered_package_is_not_installed(node: Node, vendor: Vendor) -> None:
    vendor.tamper("rich", "15.0.0")
    assert node.install()["msg"].startswith("The package index has another file of rich==15.0.0 than pytorch_requ")
    assert not list(node.root.rglob("tampered.pth")) and "torch" not in node.files()
    plain = node.install(index_url="http://mirror.example/simple")
    assert plain["msg"].startswith("pytorch_pip_index_url is a plain http address on mirror.example: give an https")


@pytest.mark.parametrize("sha256", ["1" * 64, "abc"])
def test_another_file_than_the_pinned_one(node: Node, sha256: str) -> None:
    result = node.install(sha256=sha256)
    wanted = (
        "as pytorch_sha256 says" if len(sha256) == 64 else "pytorch_sha256 is 'abc': give the 64 hexadecimal digits"
    )
    assert wanted in result["msg"]
    assert node.files() == []


@pytest.mark.usefixtures("quick")
def test_a_torch_without_the_plugin(node: Node, vendor: Vendor) -> None:
    vendor.plugin = False
    vendor.tarballs()
    result = node.install()
    assert (
        f"The torch {TORCH} of {node.root}/torch-1.23.0-695/bin/python is without habana-torch-plugin" in result["msg"]
    )
    assert "torch" not in node.files()
    assert node.install(check=True)["done"] == ["pytorch", "requirements", "link"], "a torn installation counts as none"


@pytest.mark.usefixtures("quick")
def test_a_torch_that_cannot_be_imported(node: Node, vendor: Vendor) -> None:
    vendor.torch_text = "raise ImportError('libSynapse.so: cannot open shared object file')\n"
    vendor.tarballs()
    result = node.install(requirements=[])
    assert result["msg"].endswith(
        "torch-1.23.0-695/bin/python: ImportError: libSynapse.so: cannot open shared object file."
    )
    assert "torch" not in node.files()
    # It is looked at again, and not taken for installed.
    assert node.install(requirements=[], check=True)["done"] == ["link"]
    installed = node.install(
        requirements=[], state="preinstalled", executable=f"{node.root}/torch-1.23.0-695/bin/python"
    )
    assert "libSynapse.so" in installed["msg"]


def test_a_preinstalled_torch(node: Node, vendor: Vendor, tmp_path: Path) -> None:
    told = node.install(state="preinstalled", executable="/not/there")
    assert told["msg"].startswith(
        "pytorch_state is preinstalled, but /not/there is not on this node: set pytorch_python"
    )
    bare = tmp_path / "habanalabs-venv"
    subprocess.run([BASE, "-m", "venv", "--without-pip", bare], check=True)
    python = str(bare / "bin/python")
    assert node.install(state="preinstalled", executable=python)["msg"].startswith(
        f"{python} has no torch: set pytorch_"
    )
    (packages,) = bare.glob("lib/*/site-packages")
    unpack = [sys.executable, "-m", "zipfile", "-e"]
    subprocess.run([*unpack, str(wheel(tmp_path, "torch", "2.13.0")), str(packages)], check=True)
    upstream = node.install(state="preinstalled", executable=python)
    assert upstream["msg"].startswith(f"The torch 2.13.0 of {python} is without habana-torch-plugin, so it cannot use")
    assert node.files() == []


@pytest.mark.parametrize("what", ["tarball", "storage", "index", "files", "version", "space"])
def test_what_cannot_be_had_is_said_before_anything_is_changed(
    node: Node, vendor: Vendor, tmp_path: Path, run_module: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    options: dict[str, Any] = {}
    expected = {
        "tarball": [
            "localhost (where 127.0.0.1 sends to) answers 404 for http",
            "set pytorch_repository_url to a mirror",
        ],
        "storage": ["storage.invalid (where 127.0.0.1 sends to) cannot be reached for http", "open the way to it"],
        "index": [
            "127.0.0.1 answers 404 for lightning 2.6.6 of the package index: set pytorch_pip_index_url to an index"
        ],
        "files": ["files.invalid cannot be reached for lightning 2.6.6 of the package index ("],
        "version": ["The package index has no lightning 2.6.6: set pytorch_pip_index_url"],
        "space": [
            f"{node.root} has 1.0 GiB of free space, PyTorch needs about ",
            "set pytorch_root to a folder with more",
        ],
    }[what]
    if what == "tarball":
        options["release"] = "1.24.0-1007"
    elif what == "index":
        options["index_url"] = node.options["index_url"] + "/other"
    elif what in ("files", "version"):
        page = vendor.index / "lightning/index.html"
        name = "lightning-2.6.6-py3-none-any.whl" if what == "files" else "lightning-2.5.1-py3-none-any.whl"
        page.write_text(f'<a href="http://files.invalid/{name}#sha256=0">{name}</a>')
    elif what == "space":
        monkeypatch.setattr(pytorch_env.PytorchEnv, "room", lambda self: 2**30)
    if what == "storage":
        with vendor.served("storage.invalid") as address:
            result = node.install(repository_url=f"{address}/artifactory/gaudi-pt-modules", check=True)
    else:
        result = node.install(check=True, **options)
    for each in expected:
        assert each in result["msg"], result["msg"]
    assert node.files() == []


def test_a_folder_that_is_closed_to_the_jobs_user(node: Node) -> None:
    """As ~/habanalabs-venv is, where the home is closed."""
    # The folders of tests are closed themselves.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        home = Path(place) / "home"
        home.mkdir(mode=0o750)
        advice = "open it (chmod o+x), or choose another place."
        result = node.install(root=str(home / "torch"), user="nobody")
        assert result["msg"] == f"User nobody may not enter {home}, so a job cannot use {home}/torch: {advice}"
        assert list(home.iterdir()) == []
        (home / "python").symlink_to("/bin/sh")
        (Path(place) / "python").symlink_to("home/python")
        account = pytorch_env.account_of("nobody")
        # On the way of a link, too.
        for name in (home / "python", Path(place) / "python"):
            assert f" may not enter {home}, so " in pytorch_env.closed_sentence(str(name), account)
        home.chmod(0o755)
        assert pytorch_env.closed_sentence(str(home / "python"), account) == ""
        assert account == pytorch_env.account_of("not-made-yet")


def test_torch_is_imported_as_the_jobs_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pytorch_env.account_of("nobody")
    calls: list[tuple[list[str], dict[str, str]]] = []

    def run(argv: list[str], environ_update: dict[str, str], cwd: str) -> tuple[int, str, str]:
        calls.append((argv, environ_update))
        return 1, "", "Traceback\nModuleNotFoundError: No module named 'torch'\n"

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: None)
    env = pytorch_env.PytorchEnv(run, str(tmp_path), RELEASE)
    with pytest.raises(Refusal) as error:
        env.must_import("/bin/sh", "nobody")
    assert str(error.value) == (
        "User nobody cannot import torch with the vendor's plugin by /bin/sh: "
        "ModuleNotFoundError: No module named 'torch'."
    )
    ((argv, environment),) = calls
    ids = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    assert argv == ["setpriv", *ids, "--", "/bin/sh", "-c", pytorch_env.IMPORT]
    assert environment["HOME"] == environment["HABANA_LOGS"] != os.environ.get("HOME")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            f"torch==2.13.0 --hash=sha256:{'0' * 64}",
            "pytorch_requirements has torch, which only the vendor's tarball may bring: take it out of the list.",
        ),
        (
            f"Habana_Torch-Plugin==1 --hash=sha256:{'0' * 64}",
            "pytorch_requirements has habana-torch-plugin, which only the vendor's tarball may",
        ),
        (
            f"Lightning==2.6.3 --hash=sha256:{'0' * 64}",
            "pytorch_requirements has lightning 2.6.3, which steals credentials as soon as it is imported "
            "(GHSA-w37p-236h-pfx3, 2026-04-30): write lightning==2.6.6 with its hashes.",
        ),
        *(
            (line, f"pytorch_requirements has the line '{line}': write each as name==version --hash=sha256:DIGEST,")
            for line in ("rich>=15", "rich==15.0.0", "rich==15 --hash=md5:00", "--index-url http://a", "-r /etc/passwd")
        ),
    ],
)
def test_a_list_that_may_not_be(node: Node, line: str, sentence: str) -> None:
    assert node.install(requirements=[f"rich==15.0.0 --hash=sha256:{'0' * 64}", line])["msg"].startswith(sentence)
    assert node.files() == []
