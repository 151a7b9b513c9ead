"""`gaudi3-deploy` on AWS as moto plays it: from nothing to nodes, to more of them, to nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT
from .support.account import Account, moto_account
from .support.tool import KEY, copied, user_environment


class Desk:
    """A folder with a copy of the tree, where gaudi3-deploy is called."""

    def __init__(self, folder: Path, account: Account) -> None:
        self.folder = folder
        self.account = account
        self.environment = user_environment(account.environment)
        copied(ROOT / "terraform", folder / "terraform")

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run the command to its end; what it said."""
        result = subprocess.run(
            ["gaudi3-deploy", *arguments],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=420,
            check=False,
        )
        assert result.returncode == code, result.stdout
        return result.stdout

    def endpoints(self) -> dict[str, dict[str, Any]]:
        """The machines on record."""
        outputs = json.loads((self.folder / "deployments/cluster/outputs.json").read_text())
        return dict(outputs["cluster_endpoints"])


@pytest.fixture
def desk(terraform: str, tmp_path: Path) -> Iterator[Desk]:
    """An empty account."""
    with moto_account(tmp_path, "us-east-1") as account:
        yield Desk(tmp_path, account)


def test_from_nothing_to_nodes_to_more_of_them_to_nothing(desk: Desk) -> None:
    before = desk.account.everything()
    wanted = ("up", "cluster", "--cloud", "aws", "--size", "16", "--type", "dl1.24xlarge")
    said = desk.run(*wanted, "--var", "region=us-east-1", "--var", f"ssh_public_key={KEY}", "--yes")
    two = desk.endpoints()
    assert sorted(two) == ["cluster-01", "cluster-02", "cluster-monitor"], said
    assert "nothing to change" in desk.run("plan", "cluster")

    desk.run("up", "cluster", "--size", "32", "--yes")
    four = desk.endpoints()
    assert sorted(set(four) - set(two)) == ["cluster-03", "cluster-04"]
    assert {name: four[name]["instance_id"] for name in two} == {name: two[name]["instance_id"] for name in two}

    desk.run("down", "cluster", "--yes")
    assert desk.account.everything() == before
