"""trainer_install for jobs in a container: a real environment, made by a stand-in's image, from a stand-in's index."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._installed import alone
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.container import Container
from ansible_collections.gaudi3.scale.plugins.modules import trainer_install
from tests import stand_in_engine
from tests.stand_in_pytorch import TORCH, Vendor, wheel

PROGRAM = ("gaudi3_scale", "0.1.0")
SOURCE = {
    "gaudi3_scale/__init__.py": "def main():\n    print('trains')\n",
    "gaudi3_scale-0.1.0.dist-info/entry_points.txt": "[console_scripts]\ngaudi3-train = gaudi3_scale:main\n",
}
IMAGE = "registry.test/pytorch-installer-2.9.0:1.23.0-695"


def trainer(folder: Path, *requires: str) -> str:
    """A trainer's wheel."""
    return str(wheel(folder, *PROGRAM, requires, SOURCE))


class Node:
    """A node, its engine, and an image with the vendor's torch."""

    def __init__(self, folder: Path, run_module: Any, index: str, pins: list[str], closed: Path) -> None:
        self.folder, self.run_module, self.pins = folder, run_module, pins
        self.index = index
        self.vendor = Vendor(folder / "vendor")
        self.root = closed / "container/0123456789ab"
        self.image = folder / "image"
        python = stand_in_engine.image_python(
            self.image, torch=TORCH, habana_torch_plugin="1.23.0.695+gaudi3.simulator", filelock="4.2.11"
        )
        self.program = stand_in_engine.make(folder / "podman", folder / "engine", str(python))

    def install(self, wheel: str, check: bool = False, **options: Any) -> dict[str, Any]:
        container = {"image": IMAGE, "release": "1.23.0-695", "requirements": self.pins, **options.pop("container", {})}
        result: dict[str, Any] = self.run_module(
            trainer_install, check=check, wheel=wheel, remote_src=True, root=str(self.root), executable="python3",
            container=container, **{"index_url": self.index, **options},
        )  # fmt: skip
        return result

    def versions(self) -> dict[str, str]:
        names = ["torch", "lightning", "rich", "filelock"]
        code = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {names}}}))"
        done = subprocess.run([self.root / "venv/bin/python", "-c", code], check=True, capture_output=True, text=True)
        found: dict[str, str] = json.loads(done.stdout)
        return found

    def own(self) -> set[str]:
        """Packages of the environment itself."""
        (packages,) = self.root.glob("venv/lib/*/site-packages")
        return {path.name.partition("-")[0] for path in packages.glob("*.dist-info")}


@pytest.fixture
def node(tmp_path: Path, run_module: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    vendor = Vendor(tmp_path / "vendor")
    pins = vendor.offer_usual()
    # pytest's folders are closed to other users.
    with vendor.served() as address, tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        made = Node(tmp_path, run_module, f"{address}/pypi/simple", pins, Path(place))
        monkeypatch.setattr(Container, "program", str(made.program))
        yield made


def test_the_image_s_torch_and_what_it_lacks(node: Node) -> None:
    built = trainer(node.folder, "torch>=2.9.0a0", "lightning>=2.6", "rich")
    assert node.install(built, check=True, allow_missing=True)["done"] == ["venv", "trainer"]
    assert node.install(built)["msg"] == f"The image {IMAGE} is not on this node: pull it there."
    stand_in_engine.pulled(node.folder / "engine", IMAGE)
    predicted = node.install(built, check=True, allow_missing=True)
    assert predicted["done"] == ["venv", "dependencies", "trainer"] and not node.root.exists()
    first = node.install(built, user="nobody", imports=["torch"])
    assert (first.get("msg"), first.get("done")) == (None, predicted["done"])
    assert first["venv"] == f"{node.root}/venv"
    # lightning asks for another torch and filelock, which the index has: neither came.
    assert node.own() == {"lightning", "rich"}
    assert node.versions() == {"torch": TORCH, "lightning": "2.6.6", "rich": "15.0.0", "filelock": "4.2.11"}
    done = subprocess.run([node.root / "venv/bin/gaudi3-train"], check=True, capture_output=True, text=True)
    assert done.stdout == "trains\n"
    for check in (True, False):
        again = node.install(built, check=check, index_url="http://127.0.0.1:9", user="nobody", imports=["torch"])
        assert (again["changed"], again["done"]) == (False, []), again

    # An emptied file of a package: it comes again. A tampered one does not come.
    (rich,) = node.root.glob("venv/lib/*/site-packages/rich/__init__.py")
    rich.write_text("")
    assert node.install(built, check=True)["done"] == ["dependencies"]
    with alone(str(node.root)):
        assert node.install(built)["msg"].startswith(f"Another run is installing below {node.root} on this node: wait")
    node.vendor.tamper("rich", "15.0.0")
    assert node.install(built)["msg"].startswith(
        "The package index has another file of rich==15.0.0 than trainer_container_requirements names: take an index"
    )
    assert not list(node.root.rglob("tampered.pth"))
    node.vendor.offer_usual()
    node.pins = node.vendor.offer_usual()
    assert node.install(built)["done"] == ["dependencies"] and rich.read_text()

    runs = [call for call in stand_in_engine.calls(node.folder / "engine") if call[0] == "run"]
    for call in runs:
        assert {"--rm", "--cap-drop=all", "--pull=never"} <= set(call)
    # No address with a password where every user of the node could read it; and the check is the job's user's.
    assert not [word for call in runs for word in call if node.index in word]
    assert ["--env=PIP_INDEX_URL" in call for call in runs].count(True) == 3
    assert [word for call in runs for word in call if word.startswith("--user=")].count("--user=65534") == 1

    # Another image under the same name gets an environment of its own.
    stand_in_engine.pulled(node.folder / "engine", IMAGE, "another")
    stand_in_engine.give(node.image, "rich", "14.0.0")
    assert node.install(built)["done"] == ["venv", "dependencies", "trainer"]
    assert node.own() == {"lightning"} and node.versions()["rich"] == "14.0.0"


def test_what_is_wrong_with_an_image_is_said_in_one_sentence(node: Node) -> None:
    stand_in_engine.pulled(node.folder / "engine", IMAGE)
    built = trainer(node.folder, "torch>=2.9.0a0", "lightning>=2.6", "rich>=14")

    def said(**options: Any) -> str:
        assert not node.root.exists()
        return str(node.install(built, **options).get("msg"))

    assert said(container={"release": "1.24.0-1007"}) == (
        f"The image {IMAGE} has habana-torch-plugin 1.23.0.695+gaudi3.simulator, but the driver's release is "
        "1.24.0-1007: take an image of that release, or set synapseai_release to the image's."
    )
    assert said(container={"requirements": node.pins[3:]}) == (
        f"The trainer needs lightning>=2.6 (missing) in the image {IMAGE}: take an image without its own version of "
        "it, or add what is missing to trainer_container_requirements as name==version --hash=sha256:DIGEST."
    )
    assert said(container={"requirements": [f"torch==2.13.0 --hash=sha256:{'0' * 64}"]}) == (
        "pytorch_requirements has torch, which only the vendor's tarball may bring: take it out of the list."
    )
    stand_in_engine.give(node.image, "lightning", "2.6.2")
    assert said().startswith(f"python3 with the image {IMAGE} has lightning 2.6.2, which steals credentials as soon as")
    stand_in_engine.give(node.image, "lightning", "2.6.6")
    stand_in_engine.give(node.image, "rich", "13.0.0")
    assert said().startswith(f"The trainer needs rich>=14 (found 13.0.0) in the image {IMAGE}: take an image without")
    stand_in_engine.give(node.image, "torch", "2.7.1")
    assert said().startswith(f"The trainer needs torch>=2.9.0a0 (found 2.7.1) in the image {IMAGE}, whose PyTorch is")
