"""Each rule of simulator/strictness.yml reaches the simulated node and device; turned round, a test notices it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite import strictness
from tests.suite.proof import ROOT, Proof

RULES = {rule.id: rule for rule in strictness.rules()}
PROOF = Proof(
    "strictness",
    {
        where: names
        for where in ("device", "node")
        if (names := [name for name, rule in RULES.items() if rule.where == where])
    },
)
TEXT = """
Each case turns one rule of `simulator/strictness.yml` off and runs the test that the row names, which has to fail.
Where a rule is off, the product does not stand it yet: the row names an expected failure, which turns the rule on.
"""


@pytest.mark.parametrize("path", strictness.written(), ids=lambda path: path.name)
def test_what_is_read_is_what_is_written_down(path: Path) -> None:
    assert path.read_text() == strictness.written()[path], "run `make strictness`"


def test_every_rule_names_a_test_and_a_source() -> None:
    for rule in RULES.values():
        file, _, name = rule.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), f"{rule.id} names {rule.test}"
        assert rule.source.strip(), f"{rule.id} has no source: name one, or write guess and the reason"


@pytest.mark.parametrize("rule", PROOF.parameters(RULES))
def test_a_rule_turned_round_is_noticed(rule: strictness.Rule) -> None:
    PROOF.skip_if_held(rule.id)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE", "GAUDI3_"))}
    if rule.state:
        environment["GAUDI3_SIMULATOR_STRICTNESS"] = f"{rule.id}=off"
    file, _, name = rule.test.partition("::")
    folder = next(
        top for top in ("simulator/torch", "simulator", "trainer", "deploy", ".") if file.startswith(top) or top == "."
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{ROOT / file}::{name}"],
        cwd=ROOT / folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    counts = result.stdout.strip().splitlines()[-1]
    expected = r"\b\d+ failed" if rule.state else r"\b\d+ xfailed"
    assert re.search(expected, counts), result.stdout[-3000:] + result.stderr[-3000:]
    state = "on" if rule.state else "off"
    PROOF.note(rule.id, {"where": rule.where, "state": state, "noticed by": f"`{rule.test}`"})
    PROOF.write_table("Rules of the simulator, turned round", TEXT, ("where", "state", "noticed by"))
