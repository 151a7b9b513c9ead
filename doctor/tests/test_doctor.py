"""The report of a node, made on a folder that stands for one."""

from __future__ import annotations

import http.server
import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from node_files import CARDS, Machine

import gaudi3_doctor as doctor
from gaudi3_doctor import cards, report, services, surroundings
from gaudi3_doctor.host import Host, Options, Result
from gaudi3_doctor.scrub import scrub, scrubber
from gaudi3_doctor.sections import Section


def test_a_healthy_card_is_nothing_odd(machine: Machine) -> None:
    found = cards.cards(machine.host, Options())
    assert found.odd == []
    assert [each["iommu_type"] for each in found.data["cards"]] == ["identity", "identity"]
    assert [each["accel"] for each in found.data["cards"]] == ["accel0", "accel1"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("/sys/kernel/iommu_groups/1/type", "DMA-FQ", "the IOMMU translates addresses of 1 cards"),
        ("/sys/kernel/iommu_groups/0/type", "DMA", "the IOMMU translates addresses of 1 cards"),
        (f"{cards.PCI}/{CARDS[1]}/status", "In reset", f"cards whose status is not Operational: {CARDS[1]} In reset"),
        (f"{cards.PCI}/{CARDS[0]}/current_link_width", "8", f"PCIe links narrower than they could be: {CARDS[0]}"),
    ],
)
def test_what_is_wrong_with_a_card_is_a_sentence(machine: Machine, path: str, value: str, sentence: str) -> None:
    machine.write(path, f"{value}\n")
    (odd,) = cards.cards(machine.host, Options()).odd
    assert odd.startswith(sentence)


def test_a_machine_without_an_iommu_group_is_fine(machine: Machine) -> None:
    for address in CARDS:
        Path(str(machine.root) + f"{cards.PCI}/{address}/iommu_group").unlink()
    found = cards.cards(machine.host, Options())
    assert found.odd == [] and {each["iommu_type"] for each in found.data["cards"]} == {"none"}


@pytest.mark.parametrize(("mode", "closed"), [(0o660, 0), (0o400, 2)])
def test_who_can_open_the_device_files_is_asked_and_nothing_opened(machine: Machine, mode: int, closed: int) -> None:
    for number in (0, 1):
        machine.write(f"/dev/accel/accel{number}", "").chmod(mode)
    machine.write("/etc/udev/rules.d/habana.rules", 'SUBSYSTEM=="accel", MODE="0666"\n')
    found = cards.device_files(machine.host, Options())
    assert found.data["files"]["/dev/accel/accel0"]["mode"].endswith(f"{mode:04o}")
    assert found.data["udev_rules"] == {"/etc/udev/rules.d/habana.rules": 'SUBSYSTEM=="accel", MODE="0666"\n'}
    if os.geteuid() != 0:  # root may open all
        assert [f"{closed} of 2" in odd for odd in found.odd] == [True] * bool(closed)


def test_torn_reads_of_a_counter_are_counted(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "/sys/class/infiniband/hbl_0"
    machine.link(f"{folder}/device", f"{cards.PCI}/{CARDS[0]}")
    machine.write(f"{folder}/ports/1/state", "1: DOWN\n")
    machine.write(f"{folder}/ports/1/hw_counters/rx_Octets", "1000\n")
    assert cards.counters(machine.host, Options(quick=True)).odd == []
    reads = iter([1000, 1000 + (3 << 32), 1000, *[1000] * 40])
    value = machine.host.value
    monkeypatch.setattr(
        machine.host, "value", lambda path: str(next(reads)) if path.endswith("rx_Octets") else value(path)
    )
    found = cards.counters(machine.host, Options(quick=True))
    assert found.odd == ["2 of 19 reads of an idle port are off by a multiple of 2**32"]
    assert found.data["steps_of_2_to_32"] == 2


def test_a_tool_that_hangs_is_killed(machine: Machine) -> None:
    hung = machine.program("hung", "#!/bin/sh\necho so far\nsleep 60 & wait\n")
    started = time.monotonic()
    outcome = machine.host.run([str(hung)], 2)
    assert outcome.code is None and outcome.failure == "gave no answer in 2 s" and outcome.out == "so far\n"
    assert time.monotonic() - started < 2 + 5


def test_variables_are_compared_and_secrets_stay_out(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HABANA_API_TOKEN", "abc123")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:abc123@proxy")
    monkeypatch.setattr(
        surroundings,
        "login_variables",
        lambda host, options: {"GC_KERNEL_PATH": "/usr/lib/tpc.so", "RDMA_CORE_LIB": ""},
    )
    unit = 'User=trainer\nEnvironment="HCCL_SOCKET_IFNAME=ens1"\nEnvironmentFile=-/etc/gaudi3-scale/fabric.env\n'
    machine.write("/etc/systemd/system/gaudi-train-demo.service", unit)
    machine.write("/etc/gaudi3-scale/fabric.env", 'HABANA_LOGS="/tmp/x"\nDATABASE_PASSWORD=abc123\n')
    found = surroundings.environment(machine.host, Options(environment_files=("/etc/gaudi3-scale/fabric.env",)))
    assert found.odd == [
        "a login has what the files of the jobs' unit lack: GC_KERNEL_PATH, RDMA_CORE_LIB",
        "empty: RDMA_CORE_LIB",
        "there is no such file or folder: GC_KERNEL_PATH=/usr/lib/tpc.so",
    ]
    assert found.data["files"] == {"/etc/gaudi3-scale/fabric.env": {"HABANA_LOGS": "/tmp/x"}}
    assert found.data["units"]["gaudi-train-demo.service"]["variables"] == {"HCCL_SOCKET_IFNAME": "ens1"}
    assert "abc123" not in json.dumps(found.data)


def test_of_a_page_of_metrics_only_names_are_kept(machine: Machine) -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'# TYPE habanalabs_power gauge\nhabanalabs_power{uuid="01P4",host="node17"} 247000\n')

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        port = server.server_address[1]
        machine.write("/proc/net/tcp", f"  sl\n   0: 0100007F:{port:04X} 00000000:0000 0A 0 0\n")
        threading.Thread(target=server.handle_request, daemon=True).start()
        found = services.metrics(machine.host, Options(exporter_ports=(port,)))
    assert found.data == {str(port): {"habanalabs_power": {"samples": 1, "type": "gauge", "labels": ["uuid", "host"]}}}
    assert services.metrics(machine.host, Options(exporter_ports=(1,))).not_tried == "nothing listens on port 1"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("node17 is up", "<host> is up"),
        ("from head.lab.example.org:29400", "from <host>:29400"),
        ("db3.lab.example.org", "<host>"),
        ("peer 192.168.7.9 port 4", "peer <address> port 4"),
        ("on fe80::b2fd:bff:fe01:203", "on <address>"),
        ("ether b0:fd:0b:01:02:03 up", "ether <mac> up"),
        ("guid b0fd:0bff:fe01:0203", "guid <guid>"),
        ("root=UUID=0e8a1b2c-1111-2222-3333-0123456789ab ro", "root=UUID=<number> ro"),
        ("Serial Number = AO 99 | x", "Serial Number = <number>| x"),
        ("Serial Number   : AO99887766", "Serial Number   : <number>"),
        ("HF_TOKEN=hf_abc123 x", "HF_TOKEN=<secret> x"),
        ('"password": "abc 123"', '"password": <secret>'),
        ("https://me:abc123@vault.habana.ai/x", "https://<login>@vault.habana.ai/x"),
        ("Authorization: Token abcdefgh1", "Authorization: <secret>"),
        ('"authorization": "ApiKey abcdefgh1", 5', '"authorization": <secret>, 5'),
        ("Proxy-Authorization: Digest abcdefgh1 x", "Proxy-Authorization: <secret> x"),
        ("https://files/x?sv=2022&sig=abc%2Fdefgh1 x", "https://files/x?sv=2022&sig=<secret> x"),
        ("https://b/k?X-Amz-Signature=0123456789ab", "https://b/k?X-Amz-Signature=<secret>"),
        ("git+https://abcdefgh1@host/x", "git+https://<login>@host/x"),
        ("with hf_abcdefghijklmnopqrst1 in it", "with <secret> in it"),
        ("ghp_abcdefghijklmnopqrst1", "<secret>"),
        ("GITHUB_PAT=abc PGPASS=x", "GITHUB_PAT=<secret> PGPASS=<secret>"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "<secret>"),
        ("/home/jane/run", "/home/<user>/run"),
        ("mail jane@example.org", "mail <mail>"),
    ],
)
def test_names_and_secrets_are_taken_out(machine: Machine, text: str, clean: str) -> None:
    assert scrubber(machine.host)(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "hl-1.24.1-fw-62.6.2.0", "driver 1.24.1-b336d5e", "5.15.0.91.88", "0000:19:00.0", "12:34:56", "127.0.0.1",
        "::1", "HL-325L 247W", "/dev/accel/accel0", "Fri Nov 20 08:30:11 UTC 2026", "node1", "overhead",
        "HLS_MODULE_ID=3",
    ],
)  # fmt: skip
def test_what_tells_nothing_of_the_owner_stays(machine: Machine, text: str) -> None:
    assert scrubber(machine.host)(text) == text


def test_the_names_of_keys_are_cleaned_too_and_json_can_have_all(machine: Machine) -> None:
    given = {"node17": ["node17", 3, None, 0.5, float("nan")]}
    assert scrub(given, scrubber(machine.host)) == {"<host>": ["<host>", 3, None, 0.5, "nan"]}


def fake_sections(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    sections = tuple(Section(key, key, run) for key, run in functions.items())
    monkeypatch.setattr(report, "SECTIONS", sections)
    monkeypatch.setattr(report, "on_cards", lambda host, options, log: iter(()))


def test_no_section_stops_another(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(host: Host, options: Options) -> Result:
        raise ZeroDivisionError("of what")

    monkeypatch.setattr(report, "SECTION_SECONDS", 1.5)
    fake_sections(
        monkeypatch,
        broken=broken,
        hung=lambda host, options: time.sleep(4),
        fine=lambda host, options: Result({"a": 1}),
        odd=lambda host, options: Result({"a": 1}, ["one thing"]),
        absent=lambda host, options: Result(not_tried="no reason"),
    )
    found = doctor.examine(Options(), machine.host)
    states = {key: each["state"] for key, each in found["sections"].items()}
    assert states == {"broken": "failed", "hung": "failed", "fine": "fine", "odd": "odd", "absent": "not tried"}
    text = doctor.text(found)
    assert "ZeroDivisionError: of what" in text and "gave no answer in 1.5 s" in text and "absent: no reason" in text
    assert "3 odd (broken, hung, odd); 1 fine; 1 not tried" in doctor.summary(found)


def test_a_report_stays_small(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_BYTES", 20_000)
    fake_sections(
        monkeypatch,
        long=lambda host, options: Result({"text": "x" * 200_000}),
        many=lambda host, options: Result({"a": ["y" * 50] * 500, "b": dict.fromkeys(map(str, range(500)))}),
    )
    found = doctor.examine(Options(), machine.host)
    assert len(report.dumped(found)) < 20_000 and found["shortened"]
    assert found["sections"]["long"]["data"]["text"].startswith("xxx")
    assert doctor.MAX_BYTES < 1_000_000


@pytest.mark.parametrize(
    ("line", "simulated"),
    [("gaudi3-simulator: simulated node, no Gaudi card is real", True), ("habanalabs: loaded", False)],
)
def test_a_simulated_node_is_known_by_its_own_words(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, line: str, simulated: bool
) -> None:
    fake_sections(monkeypatch, kernel_log=lambda host, options: Result({"first": [line]}))
    found = doctor.examine(Options(), machine.host)
    assert found["simulated"] is simulated
    assert ("says anything about a Gaudi" in doctor.text(found)) is simulated


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    doctor.write({"format": 1}, str(path))
    assert json.loads(path.read_text()) == {"format": 1} and stat.S_IMODE(path.stat().st_mode) == 0o644
    with pytest.raises(TypeError):
        doctor.write({"format": object()}, str(path))
    assert json.loads(path.read_text()) == {"format": 1} and list(tmp_path.iterdir()) == [path]
