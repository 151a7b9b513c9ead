"""A sound cluster raises no alert in a week, by promtool's verdict: two nodes, their jobs, and all that is no fault.

Needs promtool (Debian: apt-get download prometheus, and dpkg -x). The week is made of one value a minute, with what
sound nodes do: jobs that begin, save, are interrupted and end, cards that get hot, errors that are corrected, a scrape
that is missed, a clock that is set, a port that retrains.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.test_alerts import promtool, render

from tests.suite.proof import SEED, Proof  # isort: skip

DAY = 24 * 60
CARDS, PORTS = 8, 4
JOBS = ((60, 1500), (1503, 3000), (3060, 6000), (6100, 9900))
"""First and last minute; the second goes on where the first was interrupted."""
STEPS, TOKENS, SAVES_EVERY, SAVES_FOR = 12, 4_194_304, 60, 2
"""A minute, a step; minutes from checkpoint to checkpoint, and how long steps wait for one."""
PROOF = Proof("quiet-week", {"week": ["sound week", "day with a sensor that fails"]})
Value = float | None


class Week:
    """The series of a cluster, one value a minute; None is no sample."""

    def __init__(self, minutes: int, seed: int = SEED) -> None:
        self.minutes = minutes
        self.series: dict[str, list[Value]] = {}
        self._draw = random.Random(seed)
        for node in ("gaudi-1", "gaudi-2"):
            self._node(node)
            for card in range(CARDS):
                self._card(node, card)
            self._job(node)
        self._rest()

    def text(self, expression: str, expected: list[dict[str, Any]]) -> str:
        """A test for promtool."""
        series = [{"series": name, "values": _written(values)} for name, values in self.series.items()]
        asked = {"expr": expression, "eval_time": f"{self.minutes - 1}m", "exp_samples": expected}
        test = {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
        return yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}, width=10**9)

    def _add(self, name: str, labels: str, value: Callable[[int], Value] | float) -> None:
        course = value if callable(value) else (lambda minute: value)
        self.series[f"{name}{{{labels}}}"] = [course(minute) for minute in range(self.minutes)]

    def _counter(self, name: str, labels: str, step: Callable[[int], float]) -> None:
        values, total = list[Value](), 0.0
        for minute in range(self.minutes):
            total += step(minute)
            values.append(round(total, 3))
        self.series[f"{name}{{{labels}}}"] = values

    def _around(self, middle: float, spread: float) -> float:
        return round(middle + spread * self._draw.uniform(-1, 1), 2)

    def _node(self, node: str) -> None:
        where = f'job="node", instance="{node}"'
        disk = f'{where}, mountpoint="/var", fstype="ext4", device="sda"'
        self._add("up", where, lambda minute: float(minute != 4000))
        self._add("up", f'job="hpu", instance="{node}"', lambda minute: float(minute not in (700, 4000)))
        self._add("node_boot_time_seconds", where, 1.0)
        self._add("node_memory_MemTotal_bytes", where, 1e12)
        self._add("node_memory_MemAvailable_bytes", where, lambda minute: self._around(3e11, 2e11))
        self._add("node_filesystem_size_bytes", disk, 4e12)
        # Three checkpoints are kept: the space goes up and down.
        self._add("node_filesystem_avail_bytes", disk, lambda minute: 3e12 - 8e10 * (minute // SAVES_EVERY % 4))
        self._add("node_filesystem_readonly", disk, 0.0)
        self._add("node_timex_sync_status", where, lambda minute: float(not 5000 <= minute < 5020))
        self._add("node_textfile_scrape_error", where, 0.0)
        self._add("node_systemd_unit_state", f'{where}, name="gaudi3-job-demo.service", state="failed"', 0.0)
        self._counter("node_cpu_seconds_total", f'{where}, cpu="0", mode="idle"', lambda minute: self._around(30, 25))
        self._counter("node_network_carrier_changes_total", f'{where}, device="eth0"', lambda minute: minute == 2000)
        self._counter("promhttp_metric_handler_errors_total", f'{where}, cause="encoding"', lambda minute: 0.0)
        self._add("gaudi_health_drains", where, 0.0)
        self._add("gaudi_health_out_of_service", where, 0.0)
        self._add("gaudi_health_examination_timestamp_seconds", where, lambda minute: 60.0 * (minute // 10 * 10))
        self._add(
            "gaudi_certificate_expiry_timestamp_seconds", f'{where}, service="metrics", certificate="server"', 3e7
        )
        for job in ("node", "hpu"):
            duration = f'job="{job}", instance="{node}"'
            self._add("scrape_duration_seconds", duration, lambda minute: 9.0 if minute % 1999 == 7 else 0.3)

    def _card(self, node: str, card: int) -> None:
        where = f'job="hpu", instance="{node}", id="{card}", device="SN{card}"'
        busy = [_job(minute) is not None for minute in range(self.minutes)]
        saves = [_saves(minute) for minute in range(self.minutes)]

        def either(working: tuple[float, float], idle: tuple[float, float]) -> Callable[[int], Value]:
            return lambda minute: self._around(*(working if busy[minute] and not saves[minute] else idle))

        self._add("habanalabs_device_config", f'{where}, driver="1.24.2", fit="1", spi="2"', 1.0)
        self._add("habanalabs_temperature_onchip", where, either((78, 12), (45, 4)))
        self._add("habanalabs_temperature_threshold_slowdown", where, 100.0)
        self._add("habanalabs_power_mW", where, either((750_000, 150_000), (220_000, 20_000)))
        self._add("habanalabs_power_default_limit_mW", where, 900_000.0)
        self._add("habanalabs_utilization", where, either((90, 9), (1, 1)))
        self._add("habanalabs_memory_total_bytes", where, 1.28e11)
        self._add("habanalabs_memory_used_bytes", where, lambda minute: 1.2e11 if busy[minute] else 6e8)
        self._add("habanalabs_pci_link_width", where, 16.0)
        self._add("habanalabs_pending_rows_state", where, 0.0)
        self._add("habanalabs_ecc_feature_mode", where, 1.0)
        self._add("gaudi_card_throttle_violation", f'{where}, cause="power"', 3.0)
        self._counter("habanalabs_pcie_replay_count", where, lambda minute: float(self._draw.random() < 0.02))
        for kind, often in (("corrected", 0.01), ("uncorrected", 0.0)):
            labels = f'{where}, kind="{kind}", span="volatile"'
            self._counter("gaudi_card_ecc_errors_total", labels, lambda minute, o=often: float(self._draw.random() < o))
        for port in range(PORTS):
            kind = "external" if port == 0 else "internal"
            labels = f'{where}, port="{port}", port_type="{kind}"'
            down = 1000 * card + 77 if node == "gaudi-1" and port == 0 else -1
            self._add("habanalabs_nic_port_status", labels, lambda minute, d=down: float(minute != d))

    def _job(self, node: str) -> None:
        where = f'job="training", instance="{node}"'
        money = f'{where}, currency="EUR"'
        step, counted, steps = 0.0, 0, list[float]()
        for minute in range(self.minutes):
            counted = counted + 1 if _job(minute) is not None else 0
            if _job(minute) is None:
                step = step if minute < 1503 else 0.0
            elif counted > 3 and not _saves(minute):
                step += self._around(STEPS, 1)
            steps.append(step)

        def while_it_runs(value: Callable[[int], float]) -> Callable[[int], Value]:
            return lambda minute: round(value(minute), 3) if _job(minute) is not None else None

        self._add("up", where, lambda minute: float(_job(minute) is not None))
        self._add("gaudi_training_step", where, while_it_runs(lambda minute: int(steps[minute])))
        self._add("gaudi_training_max_steps", where, while_it_runs(lambda minute: 50_000))
        self._add("gaudi_training_tokens_total", where, while_it_runs(lambda minute: int(steps[minute]) * TOKENS))
        self._add("gaudi_training_loss", where, while_it_runs(lambda minute: self._around(2 + 6 / (1 + minute), 0.1)))
        saved = while_it_runs(lambda minute: 60 * (minute // SAVES_EVERY * SAVES_EVERY))
        self._add("gaudi_training_checkpoint_last_timestamp_seconds", where, saved)
        for part, share in (("compute", 55.5), ("data_wait", 1.5), ("checkpoint", 2.0), ("restart_loss", 1.0)):
            course = while_it_runs(lambda minute, s=share: s * (minute + 1))
            self._add("gaudi_training_goodput_seconds_total", f'{where}, part="{part}"', course)
        self._add("gaudi_training_skipped_steps_total", where, while_it_runs(lambda minute: minute // DAY))
        for name in ("report_write_failures", "checkpoint_upload_failures"):
            self._add(f"gaudi_training_{name}_total", where, while_it_runs(lambda minute: 0))
        self._add("gaudi_training_anomalies_total", f'{where}, kind="spike"', while_it_runs(lambda minute: 0))
        self._add("gaudi_cost_price_per_hour", money, while_it_runs(lambda minute: 100))
        self._add("gaudi_cost_spent", money, while_it_runs(lambda minute: 100 / 60 * minute))
        self._add("gaudi_cost_budget", money, while_it_runs(lambda minute: 30_000))
        self._add("gaudi_cost_budget_left", money, while_it_runs(lambda minute: 30_000 - 100 / 60 * minute))

    def _rest(self) -> None:
        for job in ("prometheus", "alertmanager"):
            self._add("up", f'job="{job}", instance="monitor"', 1.0)
        for node in ("gaudi-1", "gaudi-2"):
            labels = f'job="hpu", instance="{node}", reading="cards"'
            self._add("gaudi_hpu_exporter_read_success", labels, lambda minute: float(minute != 3333))
        monitor = 'job="prometheus", instance="monitor"'
        self._add("prometheus_config_last_reload_successful", monitor, 1.0)
        self._counter("prometheus_notifications_dropped_total", monitor, lambda minute: 0.0)
        self._counter("prometheus_rule_evaluation_failures_total", monitor, lambda minute: 0.0)


def _job(minute: int) -> int | None:
    return next((number for number, (first, last) in enumerate(JOBS) if first <= minute < last), None)


def _saves(minute: int) -> bool:
    return minute % SAVES_EVERY < SAVES_FOR


def _written(values: list[Value]) -> str:
    """As promtool writes a series: runs of equal values are one word."""
    words, run = list[str](), 0
    for number, value in enumerate(values):
        if number + 1 < len(values) and values[number + 1] == value:
            run += 1
            continue
        if value is None:
            words.append(f"_x{run + 1}")
        else:
            words.append(f"{value:g}x{run}" if run else repr(value))
        run = 0
    return " ".join(words)


def verdict(week: Week, folder: Path, expected: list[dict[str, Any]]) -> tuple[int, str]:
    """What promtool says of the alerts that fired at any time."""
    (folder / "rules.yml").write_text(render(), encoding="utf-8")
    fired = (
        'count by (alertname, instance, id) (count_over_time(ALERTS{alertstate="firing", alertname!="Watchdog"}[8d]))'
    )
    (folder / "week.yml").write_text(week.text(fired, expected), encoding="utf-8")
    done = promtool("test", "rules", "week.yml", cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.proof
def test_a_sound_week_has_no_alert(tmp_path: Path) -> None:
    PROOF.skip_if_held("sound week")
    assert verdict(Week(7 * DAY), tmp_path, []) == (0, "Unit Testing:  week.yml\n  SUCCESS\n\n")
    PROOF.note("sound week", {})


@pytest.mark.proof
def test_a_fault_in_it_is_found(tmp_path: Path) -> None:
    PROOF.skip_if_held("day with a sensor that fails")
    week = Week(DAY)
    (name,) = (each for each in week.series if "temperature_onchip" in each and 'gaudi-2", id="5"' in each)
    week.series[name][600:620] = [0.0] * 20
    labels = '{alertname="HpuReadingImpossible", instance="gaudi-2", id="5"}'
    code, said = verdict(week, tmp_path, [{"labels": labels, "value": 1}])
    assert code == 0, said
    PROOF.note("day with a sensor that fails", {})
