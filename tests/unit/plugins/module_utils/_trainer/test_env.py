"""How the trainer's requirements come from a package index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._pip import index_environment
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.env import TrainerEnv
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.pins import hashed_pins

INDEX = "https://user:secret@index.example/simple"


LISTED = hashed_pins(
    f"lightning==2.6.6 --hash=sha256:{'a' * 64}\npyyaml==6.0.3 --hash=sha256:{'b' * 64}\n",
)


class Pip:
    """Records how pip was called, and what it was to install; nothing is there yet."""

    def __init__(self, rc: int = 0, err: str = "") -> None:
        self.calls: list[tuple[list[str], dict[str, str]]] = []
        self.listed: list[str] = []
        self.rc, self.err = rc, err

    def __call__(self, argv: list[str], **options: Any) -> tuple[int, str, str]:
        if "install" not in argv:
            return 0, json.dumps({"distributions": {}}) if "-c" in argv else "No broken requirements found.\n", ""
        self.listed.append(Path(argv[-1]).read_text())
        self.calls.append((argv[:-1], options["environ_update"]))
        return self.rc, "", self.err


@pytest.mark.parametrize(("url", "environment"), [(INDEX, {"PIP_INDEX_URL": INDEX}), (None, {}), ("", {})])
def test_the_index_is_handed_to_pip_and_to_nobody_who_lists_processes(
    tmp_path: Path, url: str | None, environment: dict[str, str]
) -> None:
    pip = Pip()
    (tmp_path / "venv").mkdir()
    environ = index_environment(url, False, "trainer_pip_index_url")
    TrainerEnv(pip, str(tmp_path), "/usr/bin/python3").install_from_index(["lightning>=2.6", "pyyaml"], environ, LISTED)
    options = ["--disable-pip-version-check", "--no-input", "--no-deps"]
    options += ["--only-binary=:all:", "--require-hashes", "--requirement"]
    assert pip.calls == [([f"{tmp_path}/venv/bin/python", "-m", "pip", "install", *options], environment)]
    assert pip.listed == ["".join(f"{line}\n" for line in (pin.line for pin in LISTED.values()))]


def test_pips_last_line_is_the_reason(tmp_path: Path) -> None:
    env = TrainerEnv(Pip(1, "WARNING: x\nERROR: No matching distribution found for pyyaml\n"), str(tmp_path), "python3")
    (tmp_path / "venv").mkdir()
    with pytest.raises(Refusal) as caught:
        env.install_from_index(["pyyaml"], {}, LISTED)
    assert str(caught.value) == (
        "The trainer's requirements cannot be installed on this node: ERROR: No matching distribution found for pyyaml."
    )
