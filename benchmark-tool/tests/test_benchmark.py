"""gaudi3-benchmark measures, goes on after a kill, and never takes a simulated card for a Gaudi."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmark_results import CPU, GAUDI, SIMULATED, case, measured, result
from conftest import PACKAGES
from typer.testing import CliRunner

from gaudi3_benchmark import measure as measuring
from gaudi3_benchmark import result as results
from gaudi3_benchmark import runner
from gaudi3_benchmark.cli import app
from gaudi3_benchmark.report import as_html
from gaudi3_benchmark.result import Result, Row, Settings, tokens_per_second
from gaudi3_benchmark.show import NOT_GAUDI, as_text, row_words
from gaudi3_benchmark.workloads import DIFFUSION, build, unet_flops
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device

SIMULATOR = Path(__file__).resolve().parents[2] / ".cache" / "hpu"
PROCESSOR = Device("cpu", 0, "gloo")
TINY = ["--shape", "llama-tiny", "--batch", "2", "--batch", "1", "--precision", "32-true", "--size", "16"]
QUICK = ["--device", "cpu", "--mode", "eager", "--warm-up", "1", "--repeats", "3", "--rounds", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The file of a run on this machine's processors, and what was printed."""
    to = tmp_path_factory.mktemp("benchmark") / "cpu.json"
    threads = torch.get_num_threads()
    done = CliRunner().invoke(app, ["run", "--to", str(to), *TINY, *QUICK])
    torch.set_num_threads(threads)
    assert done.exit_code == 0, done.output
    return to, done.output


def test_every_step_of_every_round_is_in_the_file(ran: tuple[Path, str]) -> None:
    found = results.read(ran[0])
    assert found.complete and found.running is None
    assert [row.case.batch_size for row in found.rows] == [1, 2]
    for row in found.rows:
        assert row.outcome == "measured" and [len(each.seconds) for each in row.rounds] == [3, 3]
        assert [len(each.warm_up) for each in row.rounds] == [1, 1]
        assert row.units_per_step == 16 * row.case.batch_size and row.unit == "tokens"
        # 6 per matrix weight and token, of 2 layers (q, k, v, o and three of the MLP) and the head, and attention.
        layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128
        assert row.flops_per_step == row.units_per_step * (6 * (2 * layer + 64 * 256) + 12 * 2 * 64 * 16)
        assert row.parameters == 2 * (layer + 2 * 64) + 2 * 64 * 256 + 64
        assert row.peak_memory_bytes is not None and row.peak_memory_bytes > 2**26
    assert ran[1].splitlines()[0].startswith("round 1 of 2: llama-tiny, size 16, batch 1, 32-true: ")


def test_the_file_says_what_it_was_measured_on_and_not_whose_it_is(ran: tuple[Path, str]) -> None:
    text = ran[0].read_text()
    on = results.read(ran[0]).environment
    assert (on.device, on.hardware_name, on.simulated, on.label) == ("cpu", None, False, "cpu")
    assert on.software["torch"] == metadata.version("torch") and on.peak_flops == {} and on.driver is None
    assert socket.gethostname() not in text and str(Path.home()) not in text


def test_names_of_the_machine_in_variables_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from gaudi3_benchmark.environment import describe

    monkeypatch.setenv("PT_HPU_METRICS_FILE", f"/home/somebody/{socket.gethostname()}/10.1.2.3")
    found = describe(PROCESSOR, ["32-true"])
    assert found.variables["PT_HPU_METRICS_FILE"] == "/home/<user>/<host>/<address>"


def test_a_file_that_exists_is_kept_and_a_finished_one_is_not_measured_again(ran: tuple[Path, str]) -> None:
    before = ran[0].read_bytes()
    refused = CliRunner().invoke(app, ["run", "--to", str(ran[0]), *TINY, *QUICK])
    assert isinstance(refused.exception, ConfigError) and "which exists: give another file, or --resume" in str(
        refused.exception
    )
    again = CliRunner().invoke(app, ["run", "--to", str(ran[0]), "--resume", "--device", "cpu"])
    assert again.exit_code == 0, again.exception
    assert again.output == f"{ran[0]}: 2 row(s) on cpu\n" and ran[0].read_bytes() == before


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    to, calls = tmp_path / "a.json", []

    def measure(row: Row, settings: Settings, device: Device) -> Row:
        calls.append((row.case.batch_size, len(row.rounds)))
        if len(calls) in (4, 5):
            raise KeyboardInterrupt
        rounds = [each.seconds[0] for each in row.rounds]
        return measured(row.case, [*rounds, 0.5])

    begun = runner.begin([case(1), case(2), case(4)], result([]).settings, CPU)
    with pytest.raises(KeyboardInterrupt):
        runner.run(begun, to, PROCESSOR, str, measure)
    found = results.read(to)
    assert [len(row.rounds) for row in found.rows] == [1, 1, 1] and not found.complete
    with pytest.raises(KeyboardInterrupt):
        runner.run(runner.go_on(found, CPU, to), to, PROCESSOR, str, measure)
    found = runner.run(runner.go_on(results.read(to), CPU, to), to, PROCESSOR, str, measure)
    assert calls == [(1, 0), (2, 0), (4, 0), (1, 1), (1, 1), (2, 1), (4, 1), (2, 2), (4, 2)]
    assert found == results.read(to) and found.complete
    assert found.rows[0].words == "the process ended 2 times while this row was measured"
    assert [row.outcome for row in found.rows] == ["failed", "measured", "measured"]


def test_another_machine_does_not_go_on(tmp_path: Path) -> None:
    other = CPU.model_copy(update={"software": {"python": "3.11", "torch": "2.14.0"}})
    with pytest.raises(ConfigError, match=r"was begun with software .*2\.13\.0.* and here it is .*2\.14\.0"):
        runner.go_on(result([Row(case=case())]), other, tmp_path / "a.json")


def test_out_of_memory_is_a_result_and_larger_batches_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(of: results.Case, mode: str, device: Device) -> Any:
        if of.precision == "32-true":
            raise RuntimeError("an operation is missing")
        raise torch.OutOfMemoryError("Tried to allocate 3 GiB\nand more")

    monkeypatch.setattr(measuring, "build", exhausted)
    cases = [case(2), case(4), case(4, size=8), case(2, precision="32-true"), case(4, precision="32-true")]
    found = runner.run(runner.begin(cases, result([]).settings, CPU), tmp_path / "a.json", PROCESSOR, str)
    assert [row.outcome for row in found.rows] == ["out_of_memory", "skipped", "out_of_memory", "failed", "failed"]
    assert found.rows[0].words == "OutOfMemoryError: Tried to allocate 3 GiB"
    assert found.rows[1].words == "batch 2 was out of memory" and found.complete
    assert "out of memory" in as_text(found) and "skipped (batch 2 was out of memory)" in as_text(found)


def test_no_row_is_compiled_with_what_others_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    resets: list[str] = []
    monkeypatch.setattr(measuring, "build", lambda of, mode, device: resets.append(mode))
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append("reset"))
    for mode in ("eager", "compile"):
        settings = Settings(warm_up=0, repeats=1, rounds=1, mode=mode, threads=1)
        assert measuring.measure(Row(case=case()), settings, PROCESSOR).outcome == "failed"
    assert resets == ["eager", "compile", "reset"]


def test_the_throughput_that_a_plan_reads() -> None:
    rows = [measured(case(2), [0.5, 0.4, 0.625]), measured(case(4, config={"num_hidden_layers": 1}), [1.0] * 3)]
    found = result([*rows, Row(case=case(8), outcome="out_of_memory")], GAUDI)
    low, middle, high = tokens_per_second(found, "llama-tiny", 2, "bf16-mixed")
    assert middle == pytest.approx(256) and low * high == pytest.approx(256**2)
    assert low == pytest.approx(256 / 1.7407, rel=1e-4)  # exp(4.30265 x 0.223144 / sqrt(3))
    assert found.mfu(found.rows[0]) == pytest.approx(2e12 / 1835e12)
    with pytest.raises(ConfigError, match=r"batch 4 and bf16-mixed \(it has llama-tiny, size 64, batch 2"):
        tokens_per_second(found, "llama-tiny", 4, "bf16-mixed")  # one layer is not the shape
    with pytest.raises(ConfigError, match="batch 8 and bf16-mixed is out of memory, and has no throughput"):
        tokens_per_second(found, "llama-tiny", 8, "bf16-mixed")
    with pytest.raises(ConfigError, match="has 2 rows of"):
        more = [measured(case(2), [1.0]), measured(case(2, size=128), [1.0])]
        tokens_per_second(result(more, GAUDI), "llama-tiny", 2, "bf16-mixed")
    with pytest.raises(ConfigError, match="simulated hpu, whose times are no measurement of Gaudi"):
        tokens_per_second(result(rows, SIMULATED), "llama-tiny", 2, "bf16-mixed")


def test_a_simulated_device_has_no_throughput_in_any_report() -> None:
    found = result([measured(case(), [0.5, 0.5, 0.5])], SIMULATED)
    for text in (as_text(found), as_html(found)):
        assert "simulated hpu" in text and text.count(NOT_GAUDI) == 3
        assert "tokens/s" not in text and "500.0" not in text and "<img" not in text
    assert row_words(found.rows[0], SIMULATED).endswith(f"500.0 ms a step on this machine's processors, {NOT_GAUDI}")
    assert found.mfu(found.rows[0]) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 2}, "has schema version 2, and this release reads version 1"),
        ({"environment": {**SIMULATED.model_dump(), "simulated": False}}, "simulated exactly if it has no hardware"),
        ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
        ({"rows": [measured(case(), [1.0]).model_dump()] * 2}, "there are two rows of llama-tiny"),
    ],
)
def test_a_file_that_is_no_result_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    whole = json.loads(result([measured(case(), [1.0])]).model_dump_json())
    (tmp_path / "a.json").write_text(json.dumps({**whole, **change}))
    with pytest.raises(ConfigError, match=words):
        results.read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--shape is missing: give one or more of those that gaudi3-benchmark shapes lists"),
        (["--shape", "lama-tiny"], "--shape is 'lama-tiny', which is no known shape: did you mean 'llama-tiny'"),
        (["--shape", "llama-tiny", "--precision", "fp8"], "give one of 32-true, bf16-mixed, bf16-true"),
        (["--shape", "bert-tiny", "--size", "1024"], "'bert-tiny' has 512 positions"),
        (["--shape", "llama-tiny", "--set", "layers"], "--set is 'layers': give KEY=VALUE"),
        (["--shape", "llama-tiny", "--device", "tpu"], "--device is 'tpu': give auto, hpu, cuda or cpu"),
    ],
)
def test_a_wrong_option_is_said_before_anything_is_measured(options: list[str], words: str, tmp_path: Path) -> None:
    rest = [] if "--device" in options else ["--device", "cpu"]
    done = CliRunner().invoke(app, ["run", "--to", str(tmp_path / "a.json"), *options, *rest])
    assert isinstance(done.exception, ConfigError) and words in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_the_simulated_card_is_measured_as_such(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gaudi3_benchmark", "run", "--to", "a.json", "--shape", "llama-tiny"]
    command += ["--size", "64", "--batch", "2", "--batch", "2048", "--device", "hpu", "--mode", "eager"]
    command += ["--warm-up", "1", "--repeats", "1", "--rounds", "1", "--threads", "1"]
    path = os.pathsep.join([str(SIMULATOR), PACKAGES])
    environment = {**os.environ, "PYTHONPATH": path, "GAUDI3_HPU_SIMULATOR_HBM": str(2**26)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert NOT_GAUDI in done.stdout and "tokens/s" not in done.stdout
    found = results.read(tmp_path / "a.json")
    on = found.environment
    assert (on.device, on.hardware_name, on.simulated, on.peak_flops) == ("hpu", None, True, {})
    assert [row.outcome for row in found.rows] == ["measured", "out_of_memory"]
    peak = found.rows[0].peak_memory_bytes
    assert peak is not None and 2**20 < peak < 2**26  # the card's, not the process's


def test_the_diffusion_unet_has_its_published_size() -> None:
    diffusers = pytest.importorskip("diffusers", reason="the extra diffusion is not installed")
    sizes = {}
    for name, config in DIFFUSION.items():
        with torch.device("meta"):
            sizes[name] = sum(p.numel() for p in diffusers.UNet2DConditionModel(**config).parameters())
    assert sizes == {"stable-diffusion-1-unet": 859_520_964, "diffusion-unet-tiny": 52_004}


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_a_diffusion_unet_is_measured(precision: str) -> None:
    pytest.importorskip("diffusers", reason="the extra diffusion is not installed")
    of = results.Case(shape="diffusion-unet-tiny", size=32, batch_size=2, precision=precision, recompute="full")
    row = measuring.measure(Row(case=of), Settings(warm_up=0, repeats=1, rounds=1, mode="eager", threads=1), PROCESSOR)
    assert row.outcome == "measured", row.words
    assert (row.unit, row.units_per_step, row.parameters) == ("images", 2, 52_004)
    assert row.flops_per_step == 2 * unet_flops(of)


@pytest.mark.parametrize("shape", ["bert-tiny", "mixtral-tiny"])
def test_the_other_language_models_have_a_loss_with_gradients(shape: str) -> None:
    work = build(results.Case(shape=shape, size=16, batch_size=2, precision="32-true"), "eager", PROCESSOR)
    loss = work.loss()
    loss.backward()
    assert 4 < loss.item() < 7  # of random weights: about the logarithm of the vocabulary
    assert all(parameter.grad is not None for parameter in work.model.parameters() if parameter.requires_grad)
    assert work.units_per_step == 32


def test_the_examples_run() -> None:
    import doctest

    from gaudi3_benchmark import intervals

    for module in (intervals, results):
        done = doctest.testmod(module)
        assert done.failed == 0 and done.attempted > 0


def test_a_result_without_rounds_of_its_own_is_no_result() -> None:
    with pytest.raises(ValueError, match="is measured, and lacks its times or sizes"):
        Row(case=case(), outcome="measured")
    assert isinstance(result([]), Result)
