"""What the role logs makes of a node and a monitoring host: what is written there is read here, come what may."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import testinfra

testinfra_hosts = ["ansible://gaudi"]

UPLOAD, VENDOR = "gaudi-logs-upload", "gaudi-logs-vendor"
COLLECTOR = "gaudi-logs-collector"
#: Two processes of a job, of which the launcher says the ranks.
JOB = r"""
echo first of $0 & one=$!; sleep 1.1
(sleep 1; echo "rank eight $0") & eight=$!
(sleep 1; echo "rank nine $0"; printf '\033[2J\033]0;x\007 {{ 7 * 7 }} \044(id) %s\n' $0) & nine=$!
echo "gaudi3-launch: ranks 8 to 9 are processes $eight $nine"
wait
"""


@pytest.fixture
def monitor(host: Any, request: pytest.FixtureRequest) -> Any:
    """The monitoring host, by the same way as the node."""
    inventory = request.config.option.ansible_inventory
    (found,) = testinfra.get_hosts(["ansible://monitoring"], ansible_inventory=inventory)
    return found


@pytest.fixture
def word() -> str:
    """What no other run has written."""
    return uuid.uuid4().hex


def wait(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(1)


def read(monitor: Any, *arguments: str) -> list[str]:
    """Lines of the reader, without their times."""
    done = monitor.run("/usr/local/bin/gaudi-logs " + " ".join(arguments))
    assert done.rc == 0, done.stderr
    return [line[24:] for line in done.stdout.splitlines()]


def has(monitor: Any, word: str, *arguments: str) -> Callable[[], bool]:
    return lambda: any(word in line for line in read(monitor, "--since=15m", *arguments))


def test_all_runs_now_and_at_boot(host: Any, monitor: Any) -> None:
    for where, name in ((host, UPLOAD), (host, VENDOR), (monitor, COLLECTOR), (monitor, "gaudi-logs-retention.timer")):
        assert where.service(name).is_running and where.service(name).is_enabled, name


def test_what_a_node_writes_is_read_under_the_name_of_its_certificate(host: Any, monitor: Any, word: str) -> None:
    assert (
        host.run(f"logger --journald <<'END'\nMESSAGE={word}\n_HOSTNAME=gaudi-9\nSYSLOG_IDENTIFIER=probe\nEND").rc == 0
    )
    wait(has(monitor, word), "the line")
    (line,) = [each for each in read(monitor, "--since=15m") if word in each]
    assert line == f"gaudi-1 probe: {word}"
    assert any(node.startswith("gaudi-1 ") for node in read(monitor, "--nodes"))


def test_a_jobs_lines_are_told_apart_by_rank_and_shown_as_they_are(host: Any, monitor: Any, word: str) -> None:
    host.run("systemctl reset-failed gaudi-train-probe.service")
    unit = f"systemd-run --wait --unit=gaudi-train-probe.service /bin/sh -c '{JOB.replace(chr(39), chr(34))}' {word}"
    assert host.run(unit).rc == 0
    wait(has(monitor, f"rank nine {word}", "--job=probe"), "the job's lines")
    nine = [line for line in read(monitor, "--job=probe", "--rank=9", "--since=15m") if word in line]
    assert nine == [
        f"gaudi-1 rank 9: rank nine {word}",
        f"gaudi-1 rank 9: \\x1b[2J\\x1b]0;x\\x07 {{{{ 7 * 7 }}}} $(id) {word}",
    ]
    assert [line for line in read(monitor, "--job=probe", "--rank=8", "--since=15m") if word in line] == [
        f"gaudi-1 rank 8: rank eight {word}"
    ]
    assert has(monitor, "gaudi-train-probe.service", "--job=probe")(), "what systemd says of the unit"


def test_the_kernels_and_the_libraries_lines_come_too(host: Any, monitor: Any, word: str) -> None:
    folder = "/var/lib/gaudi3-scale/jobs/probe/habana_logs"
    assert host.run(f"mkdir -p {folder} && echo '[12:00:00][HCL][error] {word}' >> {folder}/hcl.log").rc == 0
    wait(has(monitor, word, "--job=probe"), "the library's line")
    (line,) = [each for each in read(monitor, "--job=probe", "--since=15m") if word in each]
    assert line == f"gaudi-1 {folder}/hcl.log: [12:00:00][HCL][error] {word}"


def test_a_node_without_its_collector_loses_nothing_and_catches_up(host: Any, monitor: Any, word: str) -> None:
    assert monitor.run(f"systemctl stop {COLLECTOR}").rc == 0
    try:
        assert host.run(f"for n in $(seq 200); do echo '{word} '$n; done | systemd-cat -t probe").rc == 0
        time.sleep(3)
    finally:
        assert monitor.run(f"systemctl start {COLLECTOR}").rc == 0
    wait(has(monitor, f"{word} 200"), "what was written meanwhile")
    lines = [line for line in read(monitor, "--since=15m", "--lines=100000") if f"probe: {word}" in line]
    expected = [f"gaudi-1 probe: {word} {number}" for number in range(1, 201)]
    assert sorted(lines) == sorted(expected), "each once"


def test_who_has_no_certificate_of_the_cluster_is_refused(host: Any, monitor: Any) -> None:
    address = monitor.ansible.get_variables()["ansible_host"]
    url = f"https://{address}:19532/upload"
    certificates = "/etc/gaudi3-scale/logs"
    send = "curl --silent --output /dev/null --write-out '%{http_code}' --data-binary @/tmp/entry"
    send += " --header 'Content-Type: application/vnd.fdo.journal'"
    fields = ["__REALTIME_TIMESTAMP=1", "__MONOTONIC_TIMESTAMP=1", f"_BOOT_ID={'0' * 31}1", "_TRANSPORT=kernel"]
    assert host.run(f"printf '%s\\n' {' '.join(fields)} MESSAGE=forged '' > /tmp/entry").rc == 0
    own = f"--cacert {certificates}/ca.crt --cert {certificates}/node.crt --key {certificates}/node.key"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/k -out /tmp/c -days 1 -subj /CN=gaudi-1 2>/dev/null"
    if host.run("command -v openssl").rc == 0:
        assert host.run(made).rc == 0
        foreign = host.run(f"{send} --cacert {certificates}/ca.crt --cert /tmp/c --key /tmp/k {url}").stdout
        assert foreign in ("401", "403", "000"), foreign
    assert host.run(f"{send} --cacert {certificates}/ca.crt {url}").stdout in ("401", "403", "000")
    assert not any("forged" in line for line in read(monitor, "--kernel"))
    assert host.run(f"{send} {own} {url}").stdout.startswith("2")
    wait(lambda: "gaudi-1 kernel: forged" in read(monitor, "--kernel"), "what comes with the node's own certificate")


def test_secrets_are_for_root_alone(host: Any, monitor: Any) -> None:
    for where in (host, monitor):
        file = where.file("/etc/gaudi3-scale/logs/node.key")
        assert (file.user, file.group, file.mode) == ("root", "root", 0o640)
    assert monitor.file("/var/log/gaudi-logs").mode & 0o007 == 0


def test_what_is_old_is_deleted_by_the_timer(monitor: Any) -> None:
    old = "/var/log/gaudi-logs/gone@0011-22.journal"
    assert monitor.run(f"touch --date='40 days ago' '{old}'").rc == 0
    assert monitor.run("systemctl start gaudi-logs-retention.service").rc == 0
    assert not monitor.file(old).exists


def test_a_node_that_sends_nothing_is_named(monitor: Any) -> None:
    refused = monitor.run("/usr/local/bin/gaudi-logs --node=gaudi-77")
    assert refused.rc == 2 and refused.stderr.startswith("gaudi-logs: Nothing has come from 'gaudi-77'")
