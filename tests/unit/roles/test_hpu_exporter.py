"""The exporter of role hpu_exporter: what it serves for what hl-smi prints, and what it does when hl-smi fails."""

from __future__ import annotations

import importlib
import re
import stat
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils import _hl_smi
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi import command

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "roles/hpu_exporter/files/gaudi_hpu_exporter.py"
FAKE = (Path(__file__).parent / "fake_hl_smi.py").read_text()


#: What the exporter says of a call that hangs, and how it names the call that reads the cards.
HANGS = "hl-smi gave no answer in {} seconds: a card may be in reset, so try again or raise 'timeout'"
QUERY = "command 'hl-smi -Q index,module_id,bus_id,name,uuid,serial,driver_...'"


@pytest.fixture(scope="module")
def exporter() -> Iterator[ModuleType]:
    """The program, with what lies beside it on a node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "_hl_smi", _hl_smi)
        patch.setitem(sys.modules, "_hl_smi.command", command)
        patch.syspath_prepend(str(PROGRAM.parent))
        patch.delitem(sys.modules, PROGRAM.stem, raising=False)
        patch.delitem(sys.modules, "gaudi_hpu_page", raising=False)
        yield importlib.import_module(PROGRAM.stem)


class Node:
    """A folder with the stand-in, and an exporter's reader on it whose clock is set by hand."""

    def __init__(self, folder: Path, program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.now = folder, 1000.0
        tool = folder / "hl-smi"
        tool.write_text(f"#!{sys.executable} -IS\n{FAKE}")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        self.mode("")
        monkeypatch.setattr(program.time, "monotonic", lambda: self.now)
        self.program = program
        self.run = program.Runner(5.0, output_limit=program.OUTPUT_LIMIT)
        self.reader = program.Reader(program.HlSmi(str(tool), self.run), 5.0, 10.0, 30.0)

    def mode(self, words: str) -> None:
        (self.folder / "mode").write_text(words)

    def settle(self) -> None:
        """Make every call that is due."""
        while self.reader.step() <= 0:
            pass

    def after(self, seconds: float, mode: str | None = None) -> None:
        if mode is not None:
            self.mode(mode)
        self.now += seconds
        self.settle()

    def page(self) -> str:
        return str(self.program.render(*self.reader.snapshot()))

    def series(self, name: str) -> list[str]:
        return [line for line in self.page().splitlines() if re.match(rf"{name}[{{ ]", line)]

    def own(self, name: str, reading: str) -> str:
        return self.series(f"gaudi_hpu_exporter_{name}")[0 if reading == "cards" else 1].rpartition(" ")[2]

    def calls(self) -> list[str]:
        lines = (self.folder / "calls").read_text().splitlines()
        (self.folder / "calls").unlink()
        return [re.sub(r"(-Q) \S+.*", r"\1", line) for line in lines]


@pytest.fixture
def node(tmp_path: Path, exporter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, exporter, monkeypatch)


CARD_0 = (
    'Serial="AO00000001",UUID="01P4-A",device="AO00000001",driver="1.23.0-2eae87a",'
    'fit="hl-gaudi3-1.23.0-fw-62.2.1-sec-9",id="0",pod_name="",pod_namespace="",spi="hl-gaudi3-1.23.0-fw-62.2.1-sec-9"'
)
CARD_1 = CARD_0.replace("AO00000001", "AO00000002").replace("01P4-A", "01P4-B").replace('id="0"', 'id="1"')


def test_serves_intels_names_labels_and_units(node: Node) -> None:
    node.settle()
    lines = node.page().splitlines()
    expected = {
        "habanalabs_clock_soc_mhz": "1600",
        "habanalabs_clock_soc_max_mhz": "1650",
        "habanalabs_device_config": "1",
        "habanalabs_ecc_feature_mode": "1",
        "habanalabs_memory_total_bytes": "137438953472",
        "habanalabs_memory_used_bytes": "704643072",
        "habanalabs_memory_free_bytes": "136734310400",
        "habanalabs_pci_link_speed": "32",
        "habanalabs_pci_link_width": "8",
        "habanalabs_power_default_limit_mW": "850000",
        "habanalabs_power_mW": "228000",
        "habanalabs_temperature_onchip": "36",
        "habanalabs_utilization": "7",
    }
    assert {
        line for line in lines if line.startswith("habanalabs_") and 'id="0"' in line and "nic_port" not in line
    } == {f"{name}{{{CARD_0}}} {value}" for name, value in expected.items()}
    assert "# TYPE habanalabs_power_mW gauge" in lines
    assert lines.index("# TYPE habanalabs_power_mW gauge") + 1 == lines.index(f"habanalabs_power_mW{{{CARD_0}}} 228000")


def test_serves_the_ports_that_hl_smi_names(node: Node) -> None:
    node.mode("cut")
    node.settle()
    assert node.series("habanalabs_nic_port_status") == [
        f'habanalabs_nic_port_status{{{card},port="{port}",port_type="{kind}"}} {up}'
        for card in (CARD_0, CARD_1)
        for port, kind, up in ((0, "internal", 1), (8, "external", 0))
    ]


def test_serves_what_intels_exporter_does_not_tell(node: Node) -> None:
    node.settle()
    assert node.series("gaudi_card_info")[0] == (
        'gaudi_card_info{device="AO00000001",id="0",bus_id="0000:e9:00.0",module_id="3",name="HL-325L"} 1'
    )
    assert node.series("gaudi_card_pci_link_width_max")[0] == (
        'gaudi_card_pci_link_width_max{device="AO00000001",id="0"} 16'
    )
    assert len(node.series("gaudi_card_ecc_errors_total")) == 2 * 8
    assert "# TYPE gaudi_card_ecc_errors_total counter" in node.page()
    # stats.violation.power is a word here, which nobody can compare: only the other cause is left
    assert node.series("gaudi_card_throttle_violation") == [
        f'gaudi_card_throttle_violation{{device="AO0000000{card + 1}",id="{card}",cause="thermal"}} 0'
        for card in (0, 1)
    ]


def test_a_reading_that_the_card_does_not_give_is_absent_and_not_zero(node: Node) -> None:
    node.settle()
    assert node.series("habanalabs_temperature_onchip") == [f"habanalabs_temperature_onchip{{{CARD_0}}} 36"]
    assert f"habanalabs_device_config{{{CARD_1}}} 1" in node.page()


def test_a_zero_that_hl_smi_prints_is_passed_on(node: Node) -> None:
    node.mode("zero")
    node.settle()
    assert node.series("habanalabs_temperature_onchip") == [f"habanalabs_temperature_onchip{{{CARD_0}}} 0"]


def test_a_cell_that_cannot_be_read_is_absent_and_logged_once(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.mode("word")
    node.settle()
    node.after(10)
    assert node.series("habanalabs_temperature_onchip") == []
    assert len(node.series("habanalabs_device_config")) == 2
    assert len(node.series("habanalabs_clock_soc_mhz")) == 2
    assert len(node.series("habanalabs_memory_used_bytes")) == len(node.series("habanalabs_pci_link_width")) == 1
    assert node.own("read_success", "cards") == "1"
    sentence = (
        "hl-smi gives 'hot' as temperature.aip of 0000:e9:00.0, where a number was expected: the value is left out."
    )
    assert capsys.readouterr().err.count(sentence) == 1


def test_a_number_that_no_card_has_is_absent(node: Node) -> None:
    node.mode("digits")
    node.settle()
    assert node.own("read_success", "cards") == "1"
    assert [labels for labels, _value in node.series("habanalabs_temperature_onchip")] == []
    assert len(node.series("habanalabs_device_config")) == 2


def test_a_hl_smi_that_ends_as_it_is_killed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_group: int, _signal: int) -> None:
        raise ProcessLookupError

    node.mode("hang")
    node.run.timeout = 0.2
    monkeypatch.setattr(command.os, "killpg", gone)
    node.reader.step()
    assert node.reader.snapshot()[1]["cards"].error == HANGS.format(0.2)


def test_the_power_of_both_rails_is_served_while_it_is_fresh(node: Node) -> None:
    node.settle()
    rails = [f'gaudi_card_power_watts{{device="AO00000001",id="0",rail="{rail}"}} ' for rail in ("12v", "54v")]
    assert sorted(node.series("gaudi_card_power_watts")) == [rails[0] + "35", rails[1] + "700"]
    node.now += 96
    node.reader.step()  # the cards only
    assert node.series("gaudi_card_power_watts") == []
    assert 'spi="hl-gaudi3-1.23.0' in node.page()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (
            "down",
            "hl-smi says that the Gaudi driver is not up (exit code 1 and 'driver is not up'): load the kernel modules",
        ),
        ("broken", f"{QUERY} ended with exit code 139 and said 'Segmentation fault'"),
        ("garbage", f"{QUERY} was not understood: '+-----------' is not a row of 31 fields"),
        ("endless", "hl-smi printed more than 1048576 bytes"),
    ],
)
def test_a_failed_reading_takes_the_cards_off_the_page_and_says_why(node: Node, mode: str, reason: str) -> None:
    node.settle()
    assert node.own("read_success", "cards") == "1"
    node.after(31, mode)
    assert "habanalabs_" not in node.page() and "gaudi_card_" not in node.page()
    assert node.own("read_success", "cards") == "0"
    assert node.own("read_errors_total", "cards") == "1"
    assert str(node.reader.snapshot()[1]["cards"].error).startswith(reason)
    node.after(10, "")
    assert node.own("read_success", "cards") == "1"
    assert len(node.series("habanalabs_device_config")) == 2
    assert len(node.series("habanalabs_nic_port_status")) == 4  # read anew, without waiting for their turn


@pytest.mark.parametrize("name", ["index", "module_id", "bus_id"])
def test_a_row_that_names_no_card_fails_the_reading(node: Node, name: str) -> None:
    node.mode(f"no-{name}")
    node.settle()
    assert node.own("read_success", "cards") == "0"
    assert str(node.reader.snapshot()[1]["cards"].error).endswith(f"' names no card: its {name} is 'N/A'")


def test_hl_smi_missing(node: Node) -> None:
    (node.folder / "hl-smi").unlink()
    node.settle()
    assert (
        node.reader.snapshot()[1]["cards"].error
        == f"{node.folder}/hl-smi cannot be started (No such file or directory)"
    )


def test_a_hanging_hl_smi_is_killed_and_not_started_twice_in_one_reading(node: Node) -> None:
    node.mode("hang")
    node.run.timeout = 0.5
    node.reader.step()
    assert node.reader.snapshot()[1]["cards"].error == HANGS.format(0.5)
    assert node.calls() == ["-Q"]


def test_nothing_is_started_while_a_killed_call_is_held_in_the_kernel(node: Node) -> None:
    class Held:
        def poll(self) -> None:
            return None

    node.run._killed[str(node.folder / "hl-smi")] = Held()
    node.reader.step()
    assert node.reader.snapshot()[1]["cards"].error == (
        "hl-smi is still held in the kernel since a call that had to be killed"
    )
    assert not (node.folder / "calls").exists()


def test_an_overdue_reading_is_not_served(node: Node) -> None:
    node.settle()
    node.now += 25  # two intervals and the timeout of one call
    assert len(node.series("habanalabs_device_config")) == 2
    node.now += 1
    assert "habanalabs_" not in node.page()
    assert node.own("read_success", "cards") == "0"
    assert node.reader.snapshot()[1]["cards"].error == "the last reading is 26 seconds old"


def test_overdue_ports_are_not_served_beside_fresh_cards(node: Node) -> None:
    node.settle()
    node.now += 96
    node.reader.step()  # the cards only
    assert len(node.series("habanalabs_device_config")) == 2
    assert node.series("habanalabs_nic_port_status") == []
    assert node.own("read_success", "details") == "0"


def test_ports_that_cannot_be_read_are_absent_for_that_card_only(node: Node) -> None:
    node.settle()
    node.after(31, "nolink")
    assert {line.partition('id="')[2][0] for line in node.series("habanalabs_nic_port_status")} == {"0"}
    assert node.own("read_success", "cards") == "1"
    assert node.own("read_success", "details") == "0"
    assert node.reader.snapshot()[1]["details"].error == (
        "the ports of card 0000:ea:00.0 could not be read: command 'hl-smi -n link -i 0000:ea:00.0 -P 0,8' ended with "
        "exit code 3 and said 'nothing'"
    )


def test_an_older_hl_smi_without_power_max(node: Node) -> None:
    node.mode("old")
    node.settle()
    assert node.own("read_success", "cards") == "1"
    assert node.series("habanalabs_power_default_limit_mW") == []
    assert len(node.series("habanalabs_power_mW")) == 1


def test_what_does_not_change_is_read_once_per_driver(node: Node) -> None:
    node.settle()
    ports = [f"-n {view} -i 0000:{bus}:00.0" for bus in ("e9", "ea") for view in ("ports", "link")]
    links = [call + " -P 0,8" for call in ports if "link" in call]
    assert node.calls() == ["-Q", "-L", *(call + (" -P 0,8" if "link" in call else "") for call in ports)]
    node.after(10)
    assert node.calls() == ["-Q"]
    node.after(20)
    assert node.calls() == ["-Q", "-L", *links]
    node.after(10, "upgraded")
    assert node.calls()[:3] == ["-Q", "-L", "-n ports -i 0000:e9:00.0"]
    assert 'driver="1.24.0-abcdef0",fit="hl-gaudi3-1.24.0-fw-64.1.1-sec-9"' in node.page()


def test_a_card_that_left_the_bus_is_gone_at_the_next_reading(node: Node) -> None:
    node.settle()
    node.after(10, "lost")
    assert node.series("habanalabs_device_config") == [f"habanalabs_device_config{{{CARD_0}}} 1"]
    assert len(node.series("habanalabs_nic_port_status")) == 2


def test_scrapes_never_start_hl_smi_and_never_wait_for_it(
    tmp_path: Path, exporter: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(tmp_path, exporter, monkeypatch)
    monkeypatch.undo()
    node.mode("slow")
    server = exporter.Server("127.0.0.1", 0, node.reader)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    with pytest.raises(urllib.error.HTTPError, match="503") as error:
        urllib.request.urlopen(url + "/healthz")
    assert error.value.read() == b"nothing was read yet\n"
    node.settle()
    (tmp_path / "calls").unlink()
    node.mode("hang")
    reading = threading.Thread(target=node.reader._read_cards, daemon=True)
    node.run.timeout = 6
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    reading.start()
    start = time.monotonic()
    pages: list[str] = []
    scrapers = [
        threading.Thread(target=lambda: pages.append(urllib.request.urlopen(url + "/metrics").read().decode()))
        for _ in range(20)
    ]
    for scraper in scrapers:
        scraper.start()
    for scraper in scrapers:
        scraper.join()
    assert time.monotonic() - start < 5
    assert [page.count("\nhabanalabs_device_config{") for page in pages] == [2] * 20
    assert urllib.request.urlopen(url + "/healthz").read() == b"the cards were read\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url + "/")
    reading.join()
    assert node.calls() == ["-Q"]
    server.shutdown()
    server.server_close()


def test_calls_of_hl_smi_never_overlap(node: Node) -> None:
    node.mode("slow")
    for _ in range(2):
        node.after(31)
    assert not (node.folder / "overlap").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--interval", "4"], "an interval is 5 seconds or more: hl-smi itself needs seconds"),
        (["--details-interval", "1"], "an interval is 5 seconds or more: hl-smi itself needs seconds"),
    ],
)
def test_an_interval_that_is_too_short(
    exporter: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        exporter.main(arguments)
    assert capsys.readouterr().err.endswith(f"error: {sentence}\n")


def test_a_port_that_is_taken(exporter: ModuleType, node: Node) -> None:
    taken = exporter.Server("127.0.0.1", 0, node.reader)
    port = taken.server_address[1]
    with pytest.raises(SystemExit, match=f"^cannot listen on 127.0.0.1 port {port}: Address already in use$"):
        exporter.main(["--port", str(port)])
    taken.server_close()


def test_label_values_are_escaped(exporter: ModuleType) -> None:
    row = dict.fromkeys(exporter.IDENTITY, 'a"b\\c')
    row["index"] = "0"
    page = exporter.render([exporter.Card(row, {}, {}, [])], {})
    assert 'Serial="a\\"b\\\\c"' in page


def contract() -> dict[str, dict[str, Any]]:
    text = yaml.safe_load((ROOT / "docs/reference/metrics.yml").read_text())
    metrics = {metric["name"]: metric for metric in text["metrics"]}
    assert len(metrics) == len(text["metrics"]), "a name stands twice in docs/reference/metrics.yml"
    return metrics


def test_the_page_is_what_the_metric_contract_says(node: Node) -> None:
    node.settle()
    page = node.page()
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.M))
    promised = {name: metric for name, metric in contract().items() if "hl_smi" in metric["sources"]}
    assert set(types) == set(promised)
    for line in page.splitlines():
        if not line.startswith("#"):
            name = line.partition("{")[0]
            kind = promised[name]["type"].replace("info", "gauge")
            assert (name, types[name]) == (name, kind)
            assert (name, sorted(re.findall(r'(\w+)="', line))) == (name, sorted(promised[name]["labels"]))


def test_the_contract_is_complete_in_itself() -> None:
    for name, metric in contract().items():
        assert set(metric) == {"name", "type", "unit", "labels", "sources", "help"}, name
        assert metric["type"] in ("gauge", "counter", "histogram", "info"), name
        assert metric["sources"], name
        assert metric["type"] != "counter" or name.endswith("_total"), name
        foreign = name.startswith("habanalabs_") and not set(metric["sources"]) <= {"hl_smi", "intel"}
        assert not foreign, f"{name}: Intel's names belong to the HPU exporters"
