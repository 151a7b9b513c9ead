"""A checkpoint every so many seconds, at the same steps on ranks whose clocks and speeds differ."""

from __future__ import annotations

from collections.abc import Callable

from gaudi3_scale.checkpoint.pace import Pace


def due(seconds: float | None, durations: list[float], every: int = 25) -> tuple[list[int], int]:
    """Steps after which a checkpoint is due where steps take so long, and the number of collectives."""
    now, asked = 0.0, 0

    def gather(values: tuple[float, float]) -> list[tuple[float, float]]:
        nonlocal asked
        asked += 1
        return [values, (values[0] * 0.9, values[1] * 0.9)]

    pace = Pace(every, seconds, gather, lambda: now)
    pace.start(0)
    saved = []
    for step, duration in enumerate(durations, 1):
        now += duration
        if pace.is_due(step):
            saved.append(step)
    return saved, asked


def test_steps_are_counted_unless_seconds_are_given() -> None:
    assert due(None, [1.0] * 100) == ([25, 50, 75, 100], 0)


def test_a_checkpoint_every_so_many_seconds_costs_few_collectives() -> None:
    saved, asked = due(60, [1.0] * 300)
    assert saved == [60, 120, 180, 240, 300]
    assert asked == 6  # one look more, as the speed is not known at the start


def test_a_first_step_that_compiles_and_steps_that_slow_down_are_followed() -> None:
    saved, _ = due(60, [40.0] + [1.0] * 19 + [3.0] * 100)
    times = [40.0 + min(s - 1, 19) + 3 * max(0, s - 20) for s in saved]
    gaps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
    assert all(40 <= gap <= 185 for gap in gaps) and gaps[-1] == 60


def test_ranks_of_different_clocks_agree() -> None:
    clocks, slower = [0.0, 5000.0], [(0.0, 0.0)]

    def gather(values: tuple[float, float]) -> list[tuple[float, float]]:
        return [values, *slower]

    def clock(rank: int) -> Callable[[], float]:
        return lambda: clocks[rank]

    paces = [Pace(25, 10, gather, clock(rank)) for rank in (0, 1)]
    for pace in paces:
        pace.start(0)
    steps: list[list[int]] = [[], []]
    looked = [0]
    for step in range(1, 60):
        for rank, duration in ((0, 1.0), (1, 1.3)):
            clocks[rank] += duration
        slower[:] = [(1.3 * (step - (steps[0] or [0])[-1]), 1.3 * (step - looked[-1]))]
        for rank, pace in enumerate(paces):
            if pace.is_due(step):
                steps[rank].append(step)
    assert steps[0] == steps[1] and len(steps[0]) >= 3
