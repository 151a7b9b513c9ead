"""Results with known times, for tests of what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gaudi3_benchmark.result import Case, Environment, Result, Round, Row, Settings

SOFTWARE = {"python": "3.11", "torch": "2.13.0"}
CPU = Environment(device="cpu", hardware_name=None, simulated=False, software=SOFTWARE)
SIMULATED = Environment(device="hpu", hardware_name=None, simulated=True, software=SOFTWARE)
GAUDI = Environment(
    device="hpu", hardware_name="GAUDI3", simulated=False, software=SOFTWARE, peak_flops={"bf16-mixed": 1835e12}
)


def case(batch: int = 2, **more: Any) -> Case:
    """Of a tiny Llama."""
    return Case.model_validate(
        {"shape": "llama-tiny", "size": 64, "batch_size": batch, "precision": "bf16-mixed", **more}
    )


def measured(of: Case, rounds: Sequence[float], **more: Any) -> Row:
    """A row with rounds of three equal steps."""
    values: dict[str, Any] = {
        "case": of,
        "outcome": "measured",
        "units_per_step": of.batch_size * of.size,
        "parameters": 1000,
        "flops_per_step": 1e12,
        "rounds": [Round(warm_up=(9.0,), seconds=(each,) * 3, peak_memory_bytes=2**30) for each in rounds],
    }
    return Row.model_validate({**values, **more})


def result(rows: Sequence[Row], environment: Environment = CPU, rounds: int = 3) -> Result:
    """A file of these rows."""
    return Result(
        program="gaudi3-benchmark 0.1.0",
        began="2026-11-23T06:00:00Z",
        settings=Settings(warm_up=1, repeats=3, rounds=rounds, mode="eager", threads=1),
        environment=environment,
        rows=tuple(rows),
    )
