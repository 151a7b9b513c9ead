"""The largest batch that fits: predicted, and then made true by at most two real steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gaudi3_scale.distributed.exchange import record
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.planning.peak import largest

TRIALS = 2
"""Real steps where a prediction leads them."""
PROBES = 8
"""Real steps where there is none."""
IDLE = 0.5
"""Share of the memory up to which a predicted step is not tried: no error of a prediction is as large."""
WORTH = 1.01
"""A second trial is made for a batch this much larger."""
SHRINK = 0.9
"""Share of the memory that is aimed for after a step that the prediction said would fit did not."""


@record
@dataclass(frozen=True)
class BatchTrial:
    """What a real step of a batch came to, on the process that needed the most."""

    batch: int
    fits: bool
    peak: int | None
    """Bytes of its highest point, of what this process put on the device; None if it did not come to its end."""


@record
@dataclass(frozen=True)
class FoundBatch:
    """The largest micro-batch, and how it was found."""

    batch: int
    how: str
    """One phrase."""
    predicted: int | None = None
    """Bytes that a step takes by the prediction, as far as there is one."""
    measured: int | None = None
    """Bytes that it took in a trial; None if it was not tried."""
    limit: int | None = None
    """Bytes that it may take; None where the memory was not what bounds it."""
    trials: list[BatchTrial] = field(default_factory=list)


def search(
    peak: Callable[[int], int], trial: Callable[[int], BatchTrial], limit: int, most: int, share: float = 1.0
) -> FoundBatch:
    """The largest batch up to `most` whose step takes at most `limit` bytes.

    Args:
        peak: predicted bytes of a step with this many samples: the highest of lines, so convex.
        trial: makes such steps; its result is the same on all processes.
        limit: bytes.
        most: samples.
        share: `limit` as a share of the device's free memory; a trial may take all of it.

    The first trial is made with the largest batch by the prediction. What it measures corrects the prediction, and
    where that gains at least 1 %, or the step did not fit, a second one is made. A batch whose predicted step takes at
    most half of the memory is not tried. Raises ConfigError where not even one sample fits.
    """
    first = largest(peak, limit, most)
    if not first:
        raise too_small(peak(1), limit)
    expected = peak(first)
    if first == most and expected <= IDLE * limit:
        taken = f"{expected / limit:.0%}" if expected > limit / 100 else "less than 1%"
        how = f"the bound, at which a step takes {taken} of the memory by the prediction"
        return FoundBatch(first, how, expected, None, limit)
    trials = [trial(first)]
    tried = trials[0]
    if _within(tried, limit):
        assert tried.peak is not None
        ratio = tried.peak / expected
        second = largest(lambda batch: int(peak(batch) * ratio), limit, most)
        if second < WORTH * first:
            return FoundBatch(first, "predicted and tried", expected, tried.peak, limit, trials)
        trials.append(trial(second))
        best = trials[-1] if _within(trials[-1], limit) else tried
        return FoundBatch(best.batch, "predicted, corrected and tried", peak(best.batch), best.peak, limit, trials)
    ratio = max(1.0, tried.peak / expected) if tried.peak is not None else share / SHRINK
    second = largest(lambda batch: int(peak(batch) * max(ratio, 1.01)), limit, first - 1) if first > 1 else 0
    if second:
        trials.append(trial(second))
        if _within(trials[-1], limit):
            how = "predicted too high, corrected and tried"
            return FoundBatch(second, how, peak(second), trials[-1].peak, limit, trials)
    return _halve(trial, limit, trials, (second or first) // 2)


def probe(trial: Callable[[int], BatchTrial], limit: int, most: int) -> FoundBatch:
    """Without a prediction: at most eight trials, led by the line through what was measured before."""
    trials: list[BatchTrial] = []
    good: list[BatchTrial] = []
    guess, high = 1, most + 1
    while len(trials) < PROBES and guess < high:
        trials.append(trial(guess))
        if _within(trials[-1], limit):
            good.append(trials[-1])
        else:
            high = guess
        if not good:
            break
        low = good[-1].batch
        if high <= most:
            guess = low + max(1, (high - low) // 2)
        elif len(good) < 2:
            guess = low + 1
        else:
            guess = min(max(_line(good[-2], good[-1], limit), low), 16 * low)
        guess = min(guess, most)
        if guess == low:
            break
    if not good:
        raise too_small(None, limit)
    best = max(good, key=lambda each: each.batch)
    return FoundBatch(best.batch, f"tried {len(trials)} batches", None, best.peak, limit, trials)


def _line(before: BatchTrial, last: BatchTrial, limit: int) -> int:
    """The batch at which the line through two measured steps comes to the limit."""
    assert before.peak is not None and last.peak is not None
    slope = (last.peak - before.peak) / (last.batch - before.batch)
    return last.batch + int((limit - last.peak) / slope) if slope > 0 else 4 * last.batch


def _halve(trial: Callable[[int], BatchTrial], limit: int, trials: list[BatchTrial], batch: int) -> FoundBatch:
    while batch and len(trials) < PROBES:
        trials.append(trial(batch))
        if _within(trials[-1], limit):
            return FoundBatch(batch, "halved, as the prediction was too low", None, trials[-1].peak, limit, trials)
        batch //= 2
    raise too_small(None, limit)


def _within(trial: BatchTrial, limit: int) -> bool:
    return trial.fits and trial.peak is not None and trial.peak <= limit


def too_small(needed: int | None, limit: int) -> TrainerError:
    """The sentence where no batch fits."""
    needs = f"takes {needed / 2**20:,.0f} MiB by the prediction" if needed is not None else "does not fit"
    return ConfigError(
        f"A step with one sample {needs}, and {limit / 2**20:,.0f} MiB of the device may be used: shard the model "
        "(train.strategy=habana_fsdp), recompute activations (memory.activation_checkpointing=full), or shorten "
        "model.sequence_length."
    )
