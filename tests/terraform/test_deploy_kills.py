"""`gaudi3-deploy` bringing machines up, cut off at seeded instants, on AWS as moto plays it: run again, it converges.

An instant is a count of what was done at the service, not a time, so that a busy machine changes nothing. One of them
is tried with the other tests, all by `make proof-deploy-kills`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..suite.proof import SEED, Proof
from .support.account import moto_account
from .support.desk import SETTINGS, UP, Desk, Instant, cpu_seconds

#: An uninterrupted `up` changes something 56 times.
CHANGES = 55
#: Where a key, a machine and the one thing with a fixed name are made: each is there and not written down, or marked.
ALWAYS = (
    Instant("CreateKey", 1, "power"),
    Instant("EnableKeyRotation", 1, "ctrl-c"),
    Instant("CreatePlacementGroup", 1, "power"),
    Instant("RunInstances", 3, "ctrl-c"),
)


def instants(seed: int, drawn: int = 6) -> list[Instant]:
    """Ten of them: those above, and one out of each sixth of an `up`."""
    chance = random.Random(seed)
    width = CHANGES / drawn
    counts = [chance.randint(int(part * width) + 1, int((part + 1) * width)) for part in range(drawn)]
    return [*ALWAYS, *(Instant("*", count, chance.choice(("power", "ctrl-c", "alone"))) for count in counts)]


INSTANTS = {str(each): each for each in instants(SEED)}
PROOF = Proof("deploy-kills", {"up": list(INSTANTS)}, ["terraform", "deploy/src", "tests/terraform/support"])
TEXT = """
AWS is played by moto. `gaudi3-deploy up` of two nodes and a monitor is cut off at an instant that is counted at the
service, then run again without `--allow-replace`. Each time it converged: three machines, one key that was ever made,
the next plan empty. Of the rest there was one of each, but for a key pair or a security group, of which one may be left
without use until `gaudi3-deploy down` deletes it.

`power`: everything is killed at once, with a request done and not yet answered. `ctrl-c`: as a terminal does it.
`alone`: `gaudi3-deploy` is killed and Terraform goes on. `change 9` is the ninth call that changed something.
"""


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
        "in the state by then": written,
        "marked as half made": ", ".join(tainted) or "nothing",
        "CPU seconds": round(first + second),
        "seconds": round(time.monotonic() - began),
    }


@pytest.mark.parametrize("instant", PROOF.parameters(INSTANTS))
def test_cut_off_and_run_again_it_converges_and_makes_no_second_key(desk: Desk, instant: Instant) -> None:
    print(f"seed {SEED}: {instant}")
    PROOF.skip_if_held(str(instant))
    row = converge(desk, instant)
    if PROOF.is_running:
        assert "nothing to change" in desk.run("plan", "cluster")
        PROOF.note(str(instant), row)
        PROOF.write_table("`gaudi3-deploy up`, cut off and run again", TEXT, list(row))
