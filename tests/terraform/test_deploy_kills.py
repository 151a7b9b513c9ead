"""`gaudi3-deploy up` cut off at seeded instants, on AWS as moto plays it: run again, it converges.

An instant is a count of what was done at the service, not a time, so that a busy machine changes nothing. The sample
runs with the other tests, the rest as a proof (`make proof-deploy-kills`): results are kept in
`.cache/proofs/deploy-kills.json` and not made again for the same commit and seed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT
from .support.account import moto_account
from .support.desk import SETTINGS, UP, Desk, Instant, cpu_seconds

SEED = int(os.environ.get("GAUDI3_SEED", "20261122"))
#: An uninterrupted `up` changes something 56 times.
CHANGES = 55
#: Where a key, a machine and the one thing with a fixed name are made: each is there and not written down, or marked.
ALWAYS = (
    Instant("CreateKey", 1, "power"),
    Instant("EnableKeyRotation", 1, "ctrl-c"),
    Instant("CreatePlacementGroup", 1, "power"),
    Instant("RunInstances", 3, "ctrl-c"),
)
#: Whether results are kept, and not made again.
PROVING = os.environ.get("GAUDI3_PROOF") == "deploy-kills"
RECORD = ROOT / ".cache/proofs/deploy-kills.json"
TABLE = ROOT / "docs/proofs/deploy-kills.md"


def instants(seed: int, drawn: int = 6) -> list[Instant]:
    """Ten of them: those above, and one out of each sixth of an `up`."""
    chance = random.Random(seed)
    width = CHANGES / drawn
    counts = [chance.randint(int(part * width) + 1, int((part + 1) * width)) for part in range(drawn)]
    return [*ALWAYS, *(Instant("*", count, chance.choice(("power", "ctrl-c", "alone"))) for count in counts)]


INSTANTS = instants(SEED)
SAMPLE = random.Random(SEED).sample(INSTANTS, 1)


@pytest.fixture
def desk(terraform: str, tmp_path: Path) -> Iterator[Desk]:
    """An empty account with a gate."""
    with moto_account(tmp_path, "us-east-1", tmp_path / "gate") as account:
        yield Desk(tmp_path, account)


def converge(desk: Desk, instant: Instant) -> dict[str, Any]:
    """Cut `up` off, run it again, and look at what there is; a row of the table."""
    began = time.monotonic()
    cut, first = cpu_seconds(lambda: desk.cut_off(instant, *UP, *SETTINGS))
    assert cut, f"`up` was through before {instant}"
    state = desk.state().get("resources", [])
    written = sum(len(each["instances"]) for each in state if each["mode"] == "managed")
    tainted = sorted(desk.tainted())
    _said, second = cpu_seconds(lambda: desk.run(*UP, *SETTINGS))
    names = ["cluster-01", "cluster-02", "cluster-monitor"]
    assert sorted(desk.endpoints()) == sorted(desk.account.machines()) == names
    running = desk.account.client("ec2").describe_instances()["Reservations"]
    machines = [each for reservation in running for each in reservation["Instances"]]
    assert len(machines) == 3 or "aws_instance" in tainted, "a machine was made twice"
    assert [each["KeyState"] for each in desk.keys_made()] == ["Enabled"], "a second key was made"
    found = desk.account.everything()
    # A key pair's public half cannot be read back: an orphan of it cannot be taken over, and costs nothing.
    assert found.pop("key pairs") in (1, 2)
    # A group that was cut off before it was closed is made anew.
    assert found.pop("security groups") in (1, 2)
    assert found == {
        "instances": 3, "vpcs": 1, "subnets": 2, "nat gateways": 1, "addresses": 1, "endpoints": 1, "interfaces": 4,
        "volumes": 5, "templates": 1, "placement groups": 1, "groups": 0, "buckets": 1, "keys": 1, "roles": 3,
        "profiles": 2, "logs": 1, "budgets": 0,
    }  # fmt: skip
    return {
        "instant": str(instant),
        "written": written,
        "tainted": tainted,
        "cpu_seconds": round(first + second, 1),
        "seconds": round(time.monotonic() - began),
    }


@pytest.mark.parametrize(
    "instant",
    [pytest.param(each, id=str(each), marks=() if each in SAMPLE else pytest.mark.proof) for each in INSTANTS],
)
def test_cut_off_and_run_again_it_converges_and_makes_no_second_key(desk: Desk, instant: Instant) -> None:
    print(f"seed {SEED}: {instant}")
    if PROVING and str(instant) in read_record()["rows"]:
        return
    row = converge(desk, instant)
    assert "nothing to change" in desk.run("plan", "cluster")
    if PROVING:
        write_row(row)


def commit() -> str:
    """The commit that last changed what is tried, and whether the tree differs from it there."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments, "--", "terraform", "deploy/src"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return git("log", "-1", "--format=%h") + ("-dirty" if git("status", "--porcelain") else "")


def read_record() -> dict[str, Any]:
    """The results of this commit and seed that there are."""
    try:
        found: dict[str, Any] = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        found = {}
    same = (found.get("commit"), found.get("seed")) == (commit(), SEED)
    return found if same else {"commit": commit(), "seed": SEED, "rows": {}}


def write_row(row: dict[str, Any]) -> None:
    """Keep a result, and write the table when all are there."""
    record = read_record()
    record["rows"][row["instant"]] = row
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
    if all(str(each) in record["rows"] for each in INSTANTS):
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        TABLE.write_text(table(record))


def table(record: dict[str, Any]) -> str:
    """The results as a page of the documentation."""
    lines = [
        "# `gaudi3-deploy up`, cut off and run again",
        "",
        f"Made by `make proof-deploy-kills` on {time.strftime('%Y-%m-%d')}, commit {record['commit']}, seed "
        f"{record['seed']}, with AWS played by moto. Each `up` of two nodes and a monitor is cut off at an instant "
        "that is counted at the service, then run again without `--allow-replace`. Each time it converged: three "
        "machines, one key that was ever made, the next plan empty.",
        "",
        "`power`: everything is killed at once, with a request done and not yet answered. `ctrl-c`: as a terminal does "
        "it. `alone`: `gaudi3-deploy` is killed and Terraform goes on.",
        "",
        "| instant | resources written down by then | marked as half made | CPU seconds | seconds |",
        "|---|---|---|---|---|",
    ]
    rows = [record["rows"][str(each)] for each in INSTANTS]
    lines += [
        f"| {row['instant'].replace('*', 'change')} | {row['written']} | {', '.join(row['tainted']) or 'none'} "
        f"| {row['cpu_seconds']:.0f} | {row['seconds']} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
