"""A thousand boots of sound nodes whose sensors, counters and tools misbehave: no verdict against any of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from health_machine import BOARDS, nodes
from health_noise import HUNG_TOOLS, Noise, Recorded

from ansible_collections.gaudi3.scale.plugins.module_utils._health.engine import Report, Tracker
from tests.suite.proof import Proof

BOOTS, READINGS = 5, 6
CASES = {f"{board}-{number:02}": (board, number) for board in BOARDS for number in range(100)}
PROOF = Proof(
    "health-noise",
    {board: [case for case, (each, _number) in CASES.items() if each == board] for board in BOARDS},
)
COLUMNS = ("boots", "readings", "reads spoilt", "check errors", "verdicts against a node", "faults", "faults found")
TEXT = """
A case is five boots; a row has the sums of a board's cases. Each boot is a sound node of eight cards that is read six
times. Sensors are noisy. One card in fifty shows a value that cannot be true, one in a hundred a wrong one that could
be. 12 % of the ports have a torn counter, off by multiples of 2^32. Calls take longer than their limit, and in every
boot one tool hangs: in one reading, or in all of them. A good reading comes last. In every fifth boot a card really
needs a reset: that has to be found, and nothing else.
"""
READY = "Module status                   : Operational"


@pytest.fixture(scope="module", name="recorded")
def recorded_nodes() -> Iterator[dict[str, Recorded]]:
    with nodes() as made:
        yield {board: Recorded(made.loaded(board)) for board in BOARDS}


def boot(recorded: Recorded, draw: random.Random, broken: bool) -> tuple[list[Report], list[int]]:
    """The reports of one boot, a good reading at last, and how many reads were spoilt in each."""
    tracker = Tracker(expected_cards=8)
    hung, when = draw.choice(HUNG_TOOLS), draw.choice((None, *range(READINGS)))
    reports, injected = [], []
    for number in range(READINGS + (6 if broken else 0)):
        # A hung hl-smi hides every card: it hangs for good in sound boots alone.
        hangs = (when is None and not broken) or when == number
        noise = Noise(draw, hung if hangs else None)

        def spoil(line: str, answer: tuple[int, str, str], noise: Noise = noise) -> tuple[int, str, str]:
            code, text, error = noise(line, answer)
            if broken and line.endswith("-L"):
                text = text.replace(
                    "Module status                   : Operational", "Module status                   : Needs reset", 1
                )
            return code, text, error

        reports.append(tracker.step(recorded.read(10.0 * number, spoil)))
        injected.append(noise.injected)
    reports.append(tracker.step(recorded.read(1000.0)))
    injected.append(0)
    return reports, injected


@pytest.mark.parametrize("case", PROOF.parameters({case: case for case in CASES}))
def test_no_node_is_blamed(recorded: dict[str, Recorded], case: str) -> None:
    PROOF.skip_if_held(case)
    board, _number = CASES[case]
    draw = random.Random(f"{case}-{PROOF.seed}")
    spoilt = errors = verdicts = found = 0
    for each in range(BOOTS):
        broken = each == BOOTS - 1
        reports, injected = boot(recorded[board], draw, broken)
        for report, count in zip(reports, injected, strict=True):
            assert len(report.errors) <= count, (report.errors, count)
            wrong = [verdict for verdict in report.verdicts if verdict.check != "card-status" or not broken]
            verdicts += len(wrong)
            assert wrong == []
            assert broken or not report.drains
        assert reports[-1].errors == (), "gone with the next good reading"
        found += broken and any(report.drains for report in reports)
        spoilt += sum(injected)
        errors += sum(len(report.errors) for report in reports)
    assert found == 1
    assert spoilt > BOOTS * READINGS, "the noise is there"
    if PROOF.is_running:
        row = [BOOTS, BOOTS * READINGS, spoilt, errors, verdicts, 1, int(found)]
        PROOF.note(case, dict(zip(COLUMNS, row, strict=True)))
        PROOF.write_table("False alarms on noisy nodes", TEXT, COLUMNS, lambda each: CASES[each][0])
