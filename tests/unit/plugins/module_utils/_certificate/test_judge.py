"""Forty planted histories on both boards: the grade that is meant, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from certificate_machine import Bench, Facts, History, evidence_of
from health_machine import BOARDS, nodes

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.judge import assess
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.rules import CARDS_OF, RULES
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.sources import MODES
from ansible_collections.gaudi3.scale.plugins.module_utils._health.boards import BOARDS as KNOWN
from ansible_collections.gaudi3.scale.plugins.module_utils._health.tools import MODES as OF_HL_QUAL

CARD, PORT = ("--card", "3"), ("--card", "3", "--port", "7")


def card(**more: Any) -> Any:
    """A change of what hl-smi says of card 3."""
    return lambda facts: facts["cards"][3].update(more)


def counted(**more: Any) -> Any:
    return lambda facts: facts["cards"][3]["counters"].update(more)


def port(**more: Any) -> Any:
    return lambda facts: facts["cards"][3]["ports"][7].update(more)


def rows(number: int, cause: str) -> Any:
    return card(rows=[{"address": f"0x{place:x}", "cause": cause} for place in range(number)])


def controller(part: str, **more: Any) -> Any:
    """A change of what the controller says of the card that hl-smi calls 3."""

    def change(facts: Facts) -> None:
        serial = facts["cards"][3]["serial"]
        next(each for each in facts["bmc"]["cards"] if each["serial"] == serial)[part].update(more)

    return change


def alert(severity: str) -> Any:
    found = {"field": "F", "name": "NAME", "state": "raised", "severity": severity, "message": f"a {severity} alert"}

    def change(facts: Facts) -> None:
        serial = facts["cards"][3]["serial"]
        next(each for each in facts["bmc"]["cards"] if each["serial"] == serial)["alerts"] = [found]

    return change


def qual(passed: Any, message: str = "") -> Any:
    return lambda facts: facts["qual"][3].update(passed=passed, message=message, card=3)


def step(passed: Any, message: str = "") -> Any:
    return lambda facts: facts["steps"][3].update(passed=passed, message=message)


def without(part: str) -> Any:
    return lambda facts: facts.update({part: []})


def drop_cards(facts: Facts) -> None:
    facts["cards"], facts["steps"] = facts["cards"][:7], facts["steps"][:7]


def no_keys(facts: Facts) -> None:
    for each in facts["bmc"]["cards"]:
        each["firmware"] = {}


def silence(source: str) -> Any:
    return lambda facts: facts.update(unanswered={source: "it was away"})


def same_serial(facts: Facts) -> None:
    facts["cards"][3]["serial"] = facts["cards"][2]["serial"]


def other_board(facts: Facts) -> None:
    facts["board"] = "HL-999"


def event(severity: str, text: str) -> Any:
    found = {"component": "accel3", "severity": severity, "text": text}
    return lambda facts: facts.update(events=[found])


HISTORIES = (
    History("sound", "A", "every source answered and no rule is broken"),
    # What wears a card and for which nobody publishes a limit: noted.
    History("one-row-single", "A", "1 replaced rows, cause Single Bit ECC", change=rows(1, "Single Bit ECC")),
    History("many-rows", "A", "32 replaced rows, cause Double Bit ECC", change=rows(32, "Double Bit ECC")),
    History("corrected", "A", "7 corrected memory errors since", (("ecc-corrected", *CARD, "--count", "7"),)),
    History("corrected-ever", "A", "90000 corrected memory errors in its life", change=counted(corrected_ever=90000)),
    History("uncorrected-once", "A", "2 uncorrected memory errors in its life", change=counted(uncorrected_ever=2)),
    History("throttled-power", "A", "slowed down to save power 5 times", (("throttled-power", *CARD, "--count", "5"),)),
    History("throttled-heat", "A", "slowed down for heat 9 times", (("throttled-thermal", *CARD, "--count", "9"),)),
    History("retrains", "A", "links were lost and came back: 40 times at port 7", change=port(restores=40)),
    History("lost-words", "A", "code words that were not corrected: 12 at port 7", change=port(uncorrected=12)),
    History("symbol-errors", "A", "symbol error rate before correction is 5e-04, at port 7",
            (("port-symbol-errors", *PORT),)),
    History("external-down", "A", "external ports that are down, or have no cable: ", (("port-down", *CARD),)),
    History("flash-differs", "A", "the cards differ in spi: 1 cards with", (("spi-release", *CARD),)),
    History("single-bit-event", "A", "a warning", change=event("warning", "a warning")),
    History("disk-hours", "A", "disk /dev/sda counts 41000 hours",
            change=lambda facts: facts.update(disks=[{"name": "/dev/sda", "hours": 41000}])),
    History("key-revoked", "A", "key2 is revoked (its controller says 1)",
            change=controller("firmware", key2_revocation=1),
            is_of_gaudi3=True),
    History("key-odd-word", "A", "key1 is revoked (its controller says perhaps)",
            change=controller("firmware", key1_revocation="perhaps"), is_of_gaudi3=True),
    History("spare-rows-gone", "A", "spare rows: 1", change=controller("memory", spare_rows=1), is_of_gaudi3=True),
    History("alert-unpublished", "A", "a warning alert", change=alert("warning"), is_of_gaudi3=True),
    # What an owner cures.
    History("rows-pending", "B", "rows of its memory wait to be replaced", (("row-pending", *CARD),)),
    History("uncorrected", "B", "counts 2 uncorrected memory errors", (("ecc-uncorrected", *CARD, "--count", "2"),)),
    History("narrow", "B", "its PCIe link has width", (("pcie-width", *CARD),)),
    History("slow-bus", "B", "its PCIe link has generation", (("pcie-generation", *CARD),)),
    History("needs-reset", "B", "the driver says 'Needs reset'", (("needs-reset", *CARD),)),
    History("kernel-double-error", "B", "a memory error of two bits", (("kernel-event", *CARD),)),
    History("alert-error", "B", "its controller raises NAME", change=alert("error"), is_of_gaudi3=True),
    # What takes a part.
    History("given-up", "C", "the driver says 'Disabled'", (("cpu-timeout", *CARD),)),
    History("inner-link", "C", "internal port 7 is down", (("port-down", *PORT),)),
    History("card-gone", "C", "has 7 of 8 cards", change=drop_cards),
    History("qual-failed", "C", "hl_qual memory-bandwidth failed", change=qual(False)),
    History("wrong-numbers", "C", "the training step gave wrong numbers", change=step(False, "the weights differ")),
    History("kernel-critical", "C", "an end", change=event("critical", "an end")),
    History("alert-critical", "C", "its controller raises NAME", change=alert("critical"), is_of_gaudi3=True),
    History("unrepairable", "C", "its controller says unrepairable", change=controller("memory", unrepairable="Fail"),
            is_of_gaudi3=True),
    History("both", "C", "hl_qual memory-bandwidth failed", (("row-pending", *CARD),), qual(False)),
    # A source is silent: no grade, whatever else is known.
    History("no-qual", "none", "because hl_qual did not answer: it was not asked for", change=without("qual")),
    History("qual-cut", "none", "because hl_qual did not answer: memory-bandwidth gave no result", change=qual(None)),
    History("no-step", "none", "because training step did not answer: it was not asked for", change=without("steps")),
    History("hung", "none", "because hl-smi did not answer: hl-smi gave no answer", (("hl-smi-hang",),)),
    History("no-counters", "none", "because port counters did not answer: those of", change=port(restores=None)),
    History("no-board", "none", "because the board HL-999 is not known", change=other_board),
    History("no-throttle", "none", "because hl-smi did not answer: it does not tell throttled_power",
            change=counted(throttled_power=None)),
    History("no-keys", "none", "because management controller did not answer: it does not tell which boot keys",
            change=no_keys, is_of_gaudi3=True),
    History("no-controller", "none", "because management controller did not answer: it lists no card",
            change=lambda facts: facts.update(bmc={}), is_of_gaudi3=True),
    History("rows-silent", "none", "because replaced rows did not answer: it was away",
            change=silence("replaced rows")),
    History("log-silent", "none", "because kernel log did not answer: it was away", change=silence("kernel log")),
    History("no-serial", "none", "two cards have one serial number, or a card has none", change=card(serial=None)),
    History("same-serial", "none", "two cards have one serial number, or a card has none", change=same_serial),
    History("pending-unknown", "none", "wait to be replaced is not known", change=card(rows_pending=None)),
    History("step-cut", "none", "because training step did not answer: accel3 gave no result", change=step(None)),
    History("silent-and-broken", "none", "because hl_qual did not answer", (("row-pending", *CARD),), without("qual")),
)  # fmt: skip
CASES = [(board, each) for board in BOARDS for each in HISTORIES if board == "HL-325L" or not each.is_of_gaudi3]


@pytest.fixture(scope="module", name="bench")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with nodes() as made:
        yield Bench(made, tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize(("board", "history"), CASES, ids=[f"{board}-{each.name}" for board, each in CASES])
def test_a_planted_history_is_graded_as_meant(bench: Bench, board: str, history: History) -> None:
    judged = assess(evidence_of(bench.facts(history, board)))
    texts = [judged.why, *(each.sentence for each in (*judged.broken, *judged.noted))]
    assert judged.grade == history.grade, texts
    assert any(history.said in text for text in texts), texts


def test_there_are_forty_on_each_board() -> None:
    for board in BOARDS:
        assert len({each.name for name, each in CASES if name == board}) >= 40


def test_every_rule_is_broken_by_a_history(bench: Bench) -> None:
    broken = {
        each.rule
        for history in HISTORIES
        if not history.faults or history.grade in ("B", "C")
        for each in assess(evidence_of(bench.facts(history, "HL-325L"))).broken
    }
    assert broken == {rule.name for rule in RULES}


def test_a_broken_rule_is_said_although_there_is_no_grade(bench: Bench) -> None:
    history = next(each for each in HISTORIES if each.name == "silent-and-broken")
    judged = assess(evidence_of(bench.facts(history, "HL-225")))
    assert (judged.grade, [each.rule for each in judged.broken]) == ("none", ["rows-pending"])


def test_boards_and_modes_are_those_of_the_health_engine() -> None:
    assert {name: board.cards for name, board in KNOWN.items()} == CARDS_OF
    assert tuple(name for name, _arguments in OF_HL_QUAL) == MODES
