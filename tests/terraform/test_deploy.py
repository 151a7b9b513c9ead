"""`gaudi3-deploy` on AWS as moto plays it: interrupted, and run again, to nodes, to nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
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

    def interrupt(
        self, reached: Callable[[], bool], end: Callable[[subprocess.Popen[bytes]], None], *arguments: str
    ) -> int:
        """Start the command, end it as soon as a point is reached; its exit code."""
        process = subprocess.Popen(
            ["gaudi3-deploy", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 120
            while not reached():
                assert process.poll() is None and time.monotonic() < deadline, "it ended before it could be interrupted"
                time.sleep(0.1)
            end(process)
            return process.wait(timeout=120)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def state(self) -> str:
        """Terraform's state as it is on disk."""
        path = self.folder / "terraform/aws/terraform.tfstate.d/cluster/terraform.tfstate"
        return path.read_text() if path.exists() else ""

    def kill_all(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the command and all that works in this folder for it: terraform and its provider."""
        process.kill()
        for each in Path("/proc").glob("[0-9]*"):
            try:
                here = (each / "cwd").readlink().is_relative_to(self.folder / "terraform")
            except OSError:
                continue
            if here:
                os.kill(int(each.name), signal.SIGKILL)

    @staticmethod
    def press_ctrl_c(process: subprocess.Popen[bytes]) -> None:
        """As a terminal does it: to every process of the group."""
        os.killpg(process.pid, signal.SIGINT)

    def endpoints(self) -> dict[str, dict[str, Any]]:
        """The machines on record."""
        outputs = json.loads((self.folder / "deployments/cluster/outputs.json").read_text())
        return dict(outputs["cluster_endpoints"])


@pytest.fixture
def desk(terraform: str, tmp_path: Path) -> Iterator[Desk]:
    """An empty account."""
    with moto_account(tmp_path, "us-east-1") as account:
        yield Desk(tmp_path, account)


def test_interrupted_at_any_point_it_converges_and_in_the_end_nothing_is_left(desk: Desk) -> None:
    before = desk.account.everything()
    wanted = ("up", "cluster", "--cloud", "aws", "--size", "16", "--type", "dl1.24xlarge", "--yes")
    settings = ("--var", "region=us-east-1", "--var", f"ssh_public_key={KEY}")

    # The power goes while the first resources are made: gaudi3-deploy, terraform and its provider end at once.
    desk.interrupt(lambda: "aws_iam_instance_profile" in desk.state(), desk.kill_all, *wanted, *settings)
    assert desk.account.machines() == {}
    # Ctrl-C in the middle: terraform ends what it has begun.
    code = desk.interrupt(lambda: desk.account.everything()["subnets"] > 0, desk.press_ctrl_c, *wanted)
    assert code in (1, 130)
    # gaudi3-deploy alone is killed while machines are made: terraform goes on by itself.
    desk.interrupt(lambda: len(desk.account.machines()) > 0, lambda process: process.kill(), *wanted)

    said = desk.run(*wanted)
    assert (
        sorted(desk.endpoints()) == sorted(desk.account.machines()) == ["cluster-01", "cluster-02", "cluster-monitor"]
    ), said
    assert "nothing to change" in desk.run("plan", "cluster")

    # A machine that terraform was making when it was killed, and so knows nothing of.
    tags = [{"Key": "Cluster", "Value": "cluster"}, {"Key": "ManagedBy", "Value": "terraform"}]
    ec2 = desk.account.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    specification = [{"ResourceType": "instance", "Tags": [*tags, {"Key": "Name", "Value": "forgotten"}]}]
    (lost,) = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=specification)["Instances"]
    said = desk.run("down", "cluster", "--yes", code=1)
    assert "Terraform has destroyed what it knew of, but " in said
    told = re.search(r"of cluster cluster are left in us-east-1, .* delete (.*)\.$", said, re.MULTILINE)
    assert told is not None, said
    left = told.group(1).split(", ")
    assert f"instance {lost['InstanceId']}" in left
    # Beside it only what was being made when all was killed.
    for each in left:
        desk.account.remove(*each.split(" "))
    assert "deployment cluster is gone" in desk.run("down", "cluster", "--yes")
    assert desk.account.everything() == before
