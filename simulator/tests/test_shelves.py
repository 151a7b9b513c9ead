"""What the simulated repository has on its shelves: chosen by a command, kept for the clusters that come up later."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator import cli, cluster, shelves
from gaudi3_simulator.home import home
from gaudi3_simulator.image import pins, requirements_file
from gaudi3_simulator.vendor import FAULTS, NOT_IN_MATRIX, RELEASES, container_image, pytorch

Built = list[tuple[Any, ...]]

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Built:
    """What was built, without building it."""
    found: Built = []
    monkeypatch.setattr(cluster, "preflight", lambda: None)
    monkeypatch.setattr(shelves, "build_repository", lambda dest, releases, fault: found.append((releases, fault)))
    return found


def chosen_again() -> tuple[tuple[str, ...], str | None]:
    choice = shelves.chosen()
    return choice.releases, choice.fault


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("releases", [(), (NOT_IN_MATRIX,), ("1.24.1-482", "1.20.1-97")])
def test_a_choice_is_built_and_kept_until_the_next(built: Built, fault: str, releases: tuple[str, ...]) -> None:
    words = ["--releases", ",".join(releases)] if releases else []
    assert chosen_again() == (RELEASES, None)
    assert cli.main(["repository", "--fault", fault, *words]) == 0
    assert built == [(releases or RELEASES, fault)]
    assert chosen_again() == (releases or RELEASES, fault)
    assert cli.main(["repository"]) == 0
    assert chosen_again() == (RELEASES, None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fault", "no-disk"], f"--fault was no-disk: give one of {', '.join(FAULTS)}."),
        (["--releases", "1.23.0-695,1.23.9-1"], "The repository was asked for release 1.23.9-1, which is not"),
        (["--releases", ""], "--releases was empty: give one release or several, with commas between them."),
        (["--shelf", "conda"], "--shelf was conda: give one of pytorch, image."),
        (["--shelf", "image", "--releases", "1.24.2-481"], "No public source names a PyTorch version of release"),
        (["--shelf", "pytorch", "--releases", "1.24.2-481"], "No public source names a PyTorch version of release"),
    ],
)
def test_what_cannot_be_built_is_refused_and_not_kept(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], built: Built
) -> None:
    assert cli.main(["repository", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"gaudi3-simulator: {sentence}")
    assert built == []
    assert chosen_again() == (RELEASES, None)


def test_a_cluster_comes_up_with_the_chosen_repository(built: Built) -> None:
    cli.main(["repository", "--releases", NOT_IN_MATRIX, "--fault", "unmet-depends"])
    shelves.build_chosen()
    assert built == [((NOT_IN_MATRIX,), "unmet-depends")] * 2


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pip was asked for, and a device that is there."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (Path(command[command.index("--dest") + 1]) / "rich-15.0.0-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(pins, "torch_index_arguments", lambda: ["--index-url", "https://torch.example/cpu"])
    monkeypatch.setattr(shelves, "ensure_device", lambda log: Path("device.whl"))
    monkeypatch.setattr(shelves, "_compile", lambda folder, log: None)
    return commands


@pytest.mark.parametrize("releases", [(), ("1.24.1-482", "1.22.0-740")])
def test_pytorch_is_built_of_the_pinned_torch_when_asked_for(
    built: Built,
    downloads: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    releases: tuple[str, ...],
) -> None:
    asked: list[Any] = []

    def build(
        dest: Path, wanted: tuple[str, ...], python: str, device: Path, gather: Callable[[Path], None], *_: Any
    ) -> list[Path]:
        asked.append((dest, wanted, python, device))
        gather(tmp_path)
        return [dest / "one.tgz"]

    monkeypatch.setattr(pytorch, "build_shelf", build)
    shelves.arrange(releases, None, ("pytorch",), lambda _: None)
    # Not the three default releases: a tarball has 200 MB.
    assert asked == [(home() / "vendor", releases or ("1.23.0-695",), "3.11", Path("device.whl"))]
    torch, beside = downloads
    assert torch[1:4] == beside[1:4] == ["-m", "pip", "download"]
    assert [torch.count("--require-hashes"), beside.count("--require-hashes")] == [1, 1]
    assert torch[torch.index("--index-url") + 1 :] == [
        "https://torch.example/cpu", "--no-deps", "-r", str(requirements_file("torch")),
    ]  # fmt: skip
    assert "--index-url" not in beside
    assert beside[-1].endswith("/beside-torch.txt")


def test_clusters_have_pytorch_of_the_default_release_and_of_those_that_were_asked_for(
    downloads: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(pytorch, "build_shelf", lambda dest, wanted, *_: asked.append(wanted) or [])
    monkeypatch.setattr(pytorch, "built", lambda dest: ["1.24.1-482", "1.23.0-695"])
    for _ in range(2):
        shelves.ensure_pytorch(lambda _: None)
    assert asked == [("1.23.0-695", "1.24.1-482")] * 2
    # And, once, an index of what the trainer needs beside it: as it is pinned, and no torch.
    (command,) = downloads
    assert command.count("--require-hashes") == 1
    assert command[-3:] == ["--no-deps", "-r", str(requirements_file())]
    pinned = re.findall(r"^(\S+==\S+)", requirements_file().read_text(), re.MULTILINE)
    assert "lightning==2.6.6" in pinned
    assert not [pin for pin in pinned if pin.startswith("torch==")]
    page = home() / "vendor/pypi/simple/rich/index.html"
    assert page.read_text().startswith('<a href="../../files/rich-15.0.0-py3-none-any.whl#sha256=')
    assert (page.parent / "../../files/rich-15.0.0-py3-none-any.whl").exists()
    digest = page.read_text().partition("#sha256=")[2][:64]
    assert (home() / "vendor/pypi/requirements.txt").read_text() == f"rich==15.0.0 --hash=sha256:{digest}\n"


@pytest.mark.parametrize("releases", [(), ("1.24.1-482", "1.20.1-97")])
def test_the_image_is_made_of_the_image_with_torch_once(
    built: Built, monkeypatch: pytest.MonkeyPatch, releases: tuple[str, ...]
) -> None:
    commands: list[tuple[str, ...]] = []
    shelved: list[tuple[str, str]] = []

    class Podman:
        def run(self, *arguments: str) -> None:
            commands.append(arguments)

    def shelve(layout: Path, dest: Path, release: str, system: str) -> str:
        shelved.append((release, system))
        (dest / "v2").mkdir(parents=True, exist_ok=True)
        return f"gaudi-docker/{system}:{release}"

    monkeypatch.setattr(shelves, "Podman", Podman)
    monkeypatch.setattr(shelves, "ensure_image", lambda podman, log, torch: f"localhost/gaudi3-node-torch:{torch}")
    monkeypatch.setattr(container_image, "shelve", shelve)
    for _ in range(2):
        shelves.arrange(releases, None, ("image",), lambda _: None)
    (command,) = commands
    assert command[:4] == ("save", "--quiet", "--format", "oci-dir")
    assert command[-1] == "localhost/gaudi3-node-torch:True"
    wanted = releases or ("1.23.0-695",)
    assert shelved == [(release, system) for release in wanted for system in container_image.systems(release)]


@pytest.mark.parametrize(
    ("index", "found", "file", "asked"),
    [
        (["--index-url", "https://torch.example/cpu"], False, "torch", 0),
        ([], True, "torch", 1),
        ([], False, "torch-cuda", 1),
    ],
)
def test_torch_is_the_cpu_build_from_one_index_and_pypis_where_nobody_has_that(
    monkeypatch: pytest.MonkeyPatch, index: list[str], found: bool, file: str, asked: int
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0 if found else 1, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(pins, "torch_index_arguments", lambda: index)
    assert pins.torch_arguments() == [*index, "--no-deps", "-r", str(requirements_file(file))]
    assert len(commands) == asked
    assert all("--dry-run" in command and "--require-hashes" in command for command in commands)


def test_of_the_pinned_ones_those_that_torch_asks_for_come_with_their_hashes(tmp_path: Path) -> None:
    numpy = "numpy==2.4.6 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
    assert pins.selection(f"# Pins.\n{numpy}rich==15.0.0 \\\n    --hash=sha256:cc\n", ["numpy"]) == numpy
    chosen = pins.selection(requirements_file().read_text(), pins.BESIDE_TORCH)
    assert re.findall(r"^(\S+)==", chosen, re.MULTILINE) == list(pins.BESIDE_TORCH)
