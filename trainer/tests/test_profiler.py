"""The profiler's trace, its schedule, and what it says it cannot record."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET
from torch import Tensor, nn

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.profiler import GaudiProfiler


def profiled(steps: int, profiler: GaudiProfiler) -> GaudiProfiler:
    model = nn.Linear(16, 16)
    with profiler:
        for _ in range(steps):
            model(torch.ones(4, 16)).sum().backward()
            profiler.step()
    return profiler


def test_trace_has_the_active_steps_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiler = profiled(9, GaudiProfiler(schedule_wait=2, schedule_warmup=1, schedule_active=3))
    assert profiler.recorded_steps == 3
    profiler.export_chrome_trace(tmp_path / "trace.json")
    profiler.export_chrome_trace(str(tmp_path / "again.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    names = [event["name"] for event in trace["traceEvents"]]
    assert sorted({name for name in names if name.startswith("ProfilerStep")}) == [
        f"ProfilerStep#{n}" for n in (3, 4, 5)
    ]
    assert names.count("aten::addmm") == 3 and names.count("[memory]") > 0
    assert trace["device"] == "cpu"
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "trace.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "trace.json"]
    profiler.print_summary()
    printed = capsys.readouterr().out
    assert printed.startswith("3 step(s) recorded on cpu\nhpu is not recorded: this torch (")
    assert "aten::addmm" in printed


def test_memory_is_recorded_only_if_wanted_and_gz_compresses(tmp_path: Path) -> None:
    profiler = profiled(3, GaudiProfiler(activities=["cpu"], schedule_wait=0, schedule_warmup=1, schedule_active=2))
    profiler.export_chrome_trace(tmp_path / "trace.json.gz")
    trace = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert "[memory]" not in {event["name"] for event in trace["traceEvents"]}
    assert profiler.not_recorded == {}


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^activities is \['gpu'\]: give any of cpu, hpu, cuda, memory\.$"):
        GaudiProfiler(activities=["gpu"])
    with pytest.raises(ConfigError, match=r"^The schedule is wait 1, warmup 1, active 0: the first two"):
        GaudiProfiler(schedule_active=0)
    with pytest.raises(ConfigError, match=r"^Nothing of activities \['memory'\] can be recorded here \(memory alone"):
        profiled(1, GaudiProfiler(activities=["memory"]))
    with pytest.raises(
        TrainerError, match=r"^No step was recorded: 2 step\(s\) were made, and recording begins after 2"
    ):
        profiled(2, GaudiProfiler()).export_chrome_trace(tmp_path / "trace.json")
    with pytest.raises(TrainerError, match=r"^The profiler is not running: call step\(\) within"):
        GaudiProfiler().step()
    with pytest.raises(TrainerError, match=r"^The trace cannot be written to .*: give another path\.$"):
        profiled(4, GaudiProfiler()).export_chrome_trace(tmp_path / "missing" / "trace.json")


def test_synapse_tracing_on_its_own_is_refused_where_torch_records_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from gaudi3_scale import profiler as module

    kinds = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.HPU}
    monkeypatch.setattr(module, "supported_activities", lambda: kinds)
    monkeypatch.setenv("HABANA_PROFILE", "1")
    with pytest.raises(
        ConfigError, match=r"^HABANA_PROFILE is '1', with which Synapse traces the device itself .* unset"
    ):
        GaudiProfiler().__enter__()
    monkeypatch.setenv("HABANA_PROFILE", "profile_api_light")
    assert GaudiProfiler()._kinds() == [torch.profiler.ProfilerActivity.HPU, torch.profiler.ProfilerActivity.CPU]


class Module(pl.LightningModule):
    """One weight matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        return self.layer(batch).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_as_lightnings_profiler(tmp_path: Path) -> None:
    trainer = pl.Trainer(
        profiler=GaudiProfiler(schedule_wait=1, schedule_warmup=1, schedule_active=2, dirpath=tmp_path),
        accelerator="cpu",
        max_steps=6,
        **QUIET,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(24, 8), batch_size=4))
    trace = json.loads((tmp_path / "trace-0.json").read_text())
    names = [event["name"] for event in trace["traceEvents"]]
    assert names.count("run_training_batch") == 2 and "Optimizer.step#SGD.step" in names
