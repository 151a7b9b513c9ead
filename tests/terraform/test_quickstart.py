"""The documented quick starts, command by command: clouds by stand-ins, nodes and playbooks by ones that do nothing.

tests/system/test_quickstart.py goes the whole way, with simulated nodes behind a jump host.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from .support.account import Account, moto_account
from .support.deploy_workspace import DeployWorkspace
from .support.documents import blocks, commands
from .support.ibm_account import IbmAccount, ibm_account
from .support.tool import KEY

CLOUDS: dict[str, tuple[str, Callable[[Path], AbstractContextManager[Account | IbmAccount]]]] = {
    "ibm": ("On IBM Cloud", ibm_account),
    "aws": ("On AWS", lambda folder: moto_account(folder, "us-east-1")),
}


def rehearse(desk: DeployWorkspace[Any], heading: str) -> str:
    """Call what is documented, with the documented files beside; what it said."""
    (desk.folder / "job.yml").write_text(blocks("terraform.md", "Quick start")[0])
    (desk.folder / "lab.yml").write_text(blocks("onprem.md", "Name the machines")[0])
    (desk.folder / "written/first").mkdir()
    tools = desk.folder / "tools/ssh"
    tools.write_text(tools.read_text().replace("-cf - job", "-cf - first"))
    (command,) = commands("terraform.md", heading)
    # Nobody is there to be asked.
    given = [each.replace("TYPE", desk.commands.kind) for each in command]
    return desk.run(*given, "--var", f"ssh_public_key={KEY}", "--yes")


@pytest.mark.parametrize("cloud", [pytest.param("ibm"), pytest.param("aws", marks=pytest.mark.proof)])
def test_on_a_cloud_it_goes_from_nothing_to_results_to_nothing(terraform: str, tmp_path: Path, cloud: str) -> None:
    heading, made = CLOUDS[cloud]
    with made(tmp_path) as account:
        before = account.everything()
        desk: DeployWorkspace[Any] = DeployWorkspace(tmp_path, account)
        said = rehearse(desk, heading)
        assert said.splitlines()[-1] == "run trial is done"
        assert "2 machine(s) have ended their first start" in said
        plays = (tmp_path / "plays").read_text().splitlines()
        assert [play.rpartition("trainer_state=")[2] for play in plays] == ["started", "finished --tags train"]
        assert (tmp_path / "results/first").is_dir()
        assert account.everything() == before


def test_on_machines_that_are_there(terraform: str, tmp_path: Path) -> None:
    with ibm_account(tmp_path) as account:  # which nobody asks
        desk = DeployWorkspace(tmp_path, account)
        said = rehearse(desk, "On machines that you have")
    assert said.splitlines()[-1] == "run lab is done"
    assert (tmp_path / "results/first").is_dir()
    assert json.loads((tmp_path / "deployments/lab/deployment.json").read_text())["phase"] == "down"
