"""The health engine on made-up readings: what confirms a verdict, what hides one, what no node is blamed for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import fleet, tools
from ansible_collections.gaudi3.scale.plugins.module_utils._health.engine import Tracker, evaluate
from ansible_collections.gaudi3.scale.plugins.module_utils._health.events import parse_log
from ansible_collections.gaudi3.scale.plugins.module_utils._health.readings import (
    HostReading,
    NodeReading,
    Process,
    ReadFault,
    ToolResult,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.card import Card, CardPort
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmiHung

PORTS = tuple(
    CardPort(number, "external" if number in (4, 13, 21) else "internal", "up", True, 1500 if number == 4 else None)
    for number in range(24)
)


def card(index: int, **more: Any) -> Card:
    sound: dict[str, Any] = {
        "name": "HL-325L", "status": "Operational", "temperature_c": 36, "power_w": 226, "power_max_w": 850,
        "utilization": 0, "memory_used_mib": 672, "memory_total_mib": 131072, "uncorrected": 0, "corrected": 0,
        "pcie_gen": 5, "pcie_gen_max": 5, "pcie_width": 16, "pcie_width_max": 16, "ports": PORTS,
    }  # fmt: skip
    return Card(index, f"0000:{index:02x}:00.0", **{**sound, **more})


def node(at: float = 0.0, host: HostReading | None = None, bad: int = 3, **more: Any) -> NodeReading:
    """A sound reading, with ``more`` of card ``bad``."""
    cards = tuple(card(index, **(more if index == bad else {})) for index in range(8))
    return NodeReading(at, cards, host or HostReading(pci_cards=8, driver_loaded=True), processes=())


def keys(found: Any) -> list[tuple[str, str]]:
    return [(each.check, each.component) for each in found]


def test_three_readings_in_a_row_make_a_verdict() -> None:
    tracker = Tracker()
    reports = [tracker.step(node(at, status="Needs reset")) for at in (1.0, 2.0, 3.0)]
    assert [keys(report.verdicts) for report in reports] == [[], [], [("card-status", "accel3")]]
    assert keys(reports[0].suspects) == [("card-status", "accel3")]
    assert reports[2].since == {("card-status", "accel3"): 1.0}
    assert reports[2].drains


def test_a_good_reading_between_begins_again() -> None:
    bad, good = {"status": "Needs reset"}, {}
    report = evaluate([node(at, **each) for at, each in enumerate([bad, bad, good, bad, bad])])
    assert report.verdicts == ()


def test_a_verdict_goes_after_three_good_readings() -> None:
    tracker = Tracker()
    for at in range(3):
        tracker.step(node(at, status="Needs reset"))
    left = [bool(tracker.step(node(10 + at)).verdicts) for at in range(3)]
    assert left == [True, True, False]


def test_a_reading_that_failed_neither_confirms_nor_clears() -> None:
    tracker = Tracker()
    tracker.step(node(0, status="Needs reset"))
    tracker.step(node(1, status="Needs reset"))
    hidden = tracker.step(NodeReading(2, faults=(ReadFault("hl-smi", "no answer in 30 seconds"),)))
    assert hidden.verdicts == () and keys(hidden.errors) == [("reading", "hl-smi")]
    assert not hidden.drains
    assert keys(tracker.step(node(3, status="Needs reset")).verdicts) == [("card-status", "accel3")]


def test_a_tool_that_never_answers_is_no_fault_of_the_node() -> None:
    hung = [NodeReading(at, faults=(ReadFault("hl-smi", "no answer"),)) for at in range(20)]
    report = evaluate(hung)
    assert (report.verdicts, report.suspects, report.drains) == ((), (), False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature_c", 505712272), ("temperature_c", -40), ("power_w", 1900), ("utilization", 250),
        ("memory_total_mib", 672), ("memory_used_mib", 1 << 30), ("pcie_width", 0), ("pcie_gen", 9),
        ("uncorrected", -1), ("uncorrected", 1 << 32), ("corrected", 13 << 32),
    ],
)  # fmt: skip
def test_what_cannot_be_true_is_an_error_of_the_check(field: str, value: int) -> None:
    report = evaluate([node(at, **{field: value}) for at in range(5)])
    assert report.verdicts == () and not report.drains
    assert keys(report.errors) == [("reading", f"accel3 {field}")]
    assert evaluate([node(0, **{field: value}), node(1)]).errors == (), "gone with the next good reading"


def test_the_total_memory_of_a_card_in_reset_may_be_small() -> None:
    report = evaluate([node(at, status="In reset", memory_total_mib=672) for at in range(3)])
    assert keys(report.verdicts) == [("card-status", "accel3")] and report.errors == ()


@pytest.mark.parametrize(
    ("host", "check", "drains"),
    [
        ({"iommu": "card 0 is behind an IOMMU that translates"}, "iommu", False),
        ({"huge_pages": 10, "huge_pages_wanted": 2000}, "huge-pages", False),
        ({"governors": ("performance", "powersave")}, "governor", False),
        ({"firewall": "the firewall's table is not loaded"}, "firewall", False),
        ({"clock_offset_s": -3.5}, "clock", False),
        ({"pci_cards": 7}, "card-count", True),
        ({"uverbs": 7}, "rdma-files", False),
    ],
)
def test_settings_of_the_host(host: dict[str, Any], check: str, drains: bool) -> None:
    whole = HostReading(**{"pci_cards": 8, "driver_loaded": True, **host})
    report = evaluate([node(at, whole) for at in range(3)])
    assert keys(report.verdicts) == [(check, "node")]
    assert report.drains is drains
    assert evaluate([node(at, whole) for at in range(3)], without=(check,)).verdicts == ()


def test_a_board_with_a_port_too_few() -> None:
    report = evaluate([node(at, ports=PORTS[1:]) for at in range(3)])
    assert keys(report.verdicts) == [("port-count", "accel3")]
    assert "20 internal and 3 external ports where 21 and 3 belong" in report.verdicts[0].evidence


def test_code_words_that_were_not_corrected() -> None:
    ports = (replace(PORTS[0], errors={"cw_uncorrect_accum": 5}), *PORTS[1:])
    assert keys(evaluate([node(at, ports=ports) for at in range(3)]).verdicts) == [
        ("port-uncorrected", "accel3 port 0")
    ]


def test_ports_without_any_cable_are_nobodys_fault() -> None:
    ports = tuple(replace(port, link="down") if not port.is_internal else port for port in PORTS)
    reading = node()
    bare = replace(reading, cards=tuple(replace(each, ports=ports) for each in reading.cards))
    assert evaluate([replace(bare, taken_at=at) for at in range(3)]).verdicts == ()


@pytest.mark.parametrize(("numbers", "found"), [((4, 13, 21), 3), ((4, 13), 0)])
def test_a_card_none_of_whose_ports_was_brought_up_lost_them_in_a_reset(numbers: tuple[int, ...], found: int) -> None:
    """Single ports that nobody brought up have no cable; those of a whole card, beside others, do after its reset."""
    down = tuple(replace(port, link="down", enabled=False) if port.port in numbers else port for port in PORTS)
    report = evaluate([node(at, ports=down) for at in range(3)])
    assert keys(report.verdicts) == [("port-external", f"accel3 port {number}") for number in numbers][:found]
    assert {each.action for each in report.verdicts} <= {"retry"}


@pytest.mark.parametrize(("unit", "busy", "found"), [("", 0, 1), ("gaudi3-train-a.service", 0, 0), ("", 95, 0)])
def test_a_leftover_process_is_the_users_fault_and_a_job_is_none(unit: str, busy: int, found: int) -> None:
    reading = replace(node(utilization=busy), processes=(Process(4711, "python3", 3, unit),))
    report = evaluate([replace(reading, taken_at=at) for at in range(3)])
    assert [each.kind for each in report.verdicts] == ["user fault"] * found
    assert not report.drains


def events(*lines: str) -> list[NodeReading]:
    return [replace(node(at), events=tuple(parse_log(lines))) for at in range(3)]


def test_an_event_before_the_card_came_up_again_is_over() -> None:
    bus = "0000:03:00.0"
    lost = f"habanalabs {bus}: Device heartbeat failed! PCI link is healthy"
    ready = f"habanalabs {bus}: Successfully added device {bus} to habanalabs driver"
    assert keys(evaluate(events(lost)).verdicts) == [("kernel-log:heartbeat-lost", "accel3")]
    assert evaluate(events(lost, ready)).verdicts == ()
    assert keys(evaluate(events(ready, lost)).verdicts) == [("kernel-log:heartbeat-lost", "accel3")]


def test_an_unknown_event_is_reported_and_drains_nothing() -> None:
    report = evaluate(events("habanalabs 0000:03:00.0: the sky is falling"))
    assert keys(report.verdicts) == [("kernel-log:unknown-event", "accel3")]
    assert "the sky is falling" in report.verdicts[0].evidence and not report.drains


@pytest.mark.parametrize(("figure", "found"), [(258.2, 0), (254.9, 1)])
def test_collectives_have_a_floor(figure: float, found: int) -> None:
    text = f"[BENCHMARK]     NW Bandwidth   : {figure} GB/s\n"
    result = tools.collective_result("all_reduce", 0, text)
    report = evaluate([replace(node(at), tools=(result,)) for at in range(3)])
    assert keys(report.verdicts) == [("collective:all_reduce", "node")] * found
    assert report.drains is bool(found)


def test_the_collectives_run_over_the_cards_of_one_node() -> None:
    asked: list[list[str]] = []

    def run(command: list[str]) -> tuple[int, str, str]:
        asked.append(command)
        if command[-1] == "all2all":
            raise HlSmiHung("env gave no answer in 300 seconds")
        return 0, "[BENCHMARK]     NW Bandwidth   : 260.5 GB/s\n", ""

    results = tools.measure(run, "/opt/hccl_demo", 8)
    assert asked[0] == [
        "env",
        "-C",
        "/opt/hccl_demo",
        "python3",
        "run_hccl_demo.py",
        "--nranks",
        "8",
        "--ranks_per_node",
        "8",
        "--node_id",
        "0",
        "--size",
        "32m",
        "--loop",
        "1000",
        "--test",
        "all_reduce",
    ]
    assert [result.figures for result in results] == [
        {"all_reduce": 260.5}, {"all_gather": 260.5}, {"reduce_scatter": 260.5}, {},
    ]  # fmt: skip
    report = evaluate([replace(node(at), tools=tuple(results)) for at in range(3)])
    assert report.verdicts == () and keys(report.errors) == [("collective", "node")]


def test_a_test_without_a_result_is_an_error_of_the_check() -> None:
    results = (
        tools.qual_result("functional", 1, "", "hl_qual: accel5 is held by process 12: end that first"),
        tools.collective_result("all_reduce", 1, "Traceback"),
        ToolResult("acquire", False, "synStatus=26 [Generic failure] Device acquire failed."),
    )
    report = evaluate([replace(node(at), tools=results) for at in range(3)])
    assert keys(report.errors) == [("hl-qual:functional", "node"), ("collective", "node")]
    assert [(each.check, each.kind) for each in report.verdicts] == [("acquire", "user fault")]
    assert not report.drains


def test_the_fleet_names_the_slow_node_and_only_that_one() -> None:
    values = {f"node-{number}": 258.0 + number % 3 for number in range(16)}
    assert fleet.outliers(values) == []
    found = fleet.verdicts("all_reduce", "GB/s", {**values, "node-7": 180.0})
    assert list(found) == ["node-7"]
    assert found["node-7"].evidence == "all_reduce in GB/s is 180 where the median of 16 is 259 (MAD 1)"
    assert found["node-7"].drains


@pytest.mark.parametrize(
    "values",
    [
        {f"node-{number}": 100.0 for number in range(6)} | {"node-6": 1.0},  # too few
        {f"node-{number}": 100.0 for number in range(15)} | {"node-15": 96.0},  # within the tolerance
        {f"node-{number}": float(100 + 20 * (number % 5)) for number in range(20)} | {"node-20": 80.0},  # a wide fleet
    ],
)
def test_the_fleet_says_nothing_without_grounds(values: dict[str, float]) -> None:
    assert fleet.outliers(values) == []


def test_high_values_are_outliers_where_high_is_bad() -> None:
    values = {f"node-{number}": 60.0 + number % 2 for number in range(10)}
    assert [each.member for each in fleet.outliers({**values, "hot": 90.0}, fleet.HIGH)] == ["hot"]
    assert fleet.outliers({**values, "cold": 30.0}, fleet.HIGH) == []
