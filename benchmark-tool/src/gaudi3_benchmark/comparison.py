"""Two results, row by row: how many times as fast the new one is, and whether that is shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gaudi3_benchmark.intervals import Interval, ratio_interval
from gaudi3_benchmark.result import Environment, Result, Row, Settings
from gaudi3_benchmark.show import NOT_GAUDI, aligned, interval_text
from gaudi3_scale.errors import ConfigError

NOTE = (
    "A ratio above 1 means that the second file is faster. The 95 % interval is Welch's over the rounds; it holds for "
    "each row by itself, so that of 20 rows without a difference one is expected to show one."
)


@dataclass(frozen=True)
class Compared:
    """One case in both files."""

    case: str
    ratio: Interval | None
    """Rate of the new one over the old one's; None where one of them was not measured."""
    verdict: str
    """faster, slower, no difference shown, or what came of the rows."""


@dataclass(frozen=True)
class Comparison:
    """All cases that both have."""

    rows: tuple[Compared, ...]
    differences: tuple[tuple[str, str, str], ...]
    """What is not the same in environment and settings: name, old, new."""
    left_out: tuple[str, ...]
    """Cases that one file alone has."""
    simulated: bool

    def text(self) -> str:
        """For a terminal."""
        lines = [f"{name}: {old} -> {new}" for name, old, new in self.differences] or ["The environments are the same."]
        if self.simulated:
            lines.insert(0, f"Both are of the simulated hpu: what follows is {NOT_GAUDI}.")
        cells = [("case", "ratio [95 %]", "verdict")]
        for row in self.rows:
            cells.append((row.case, "-" if row.ratio is None else interval_text(row.ratio, 3), row.verdict))
        lines += ["", *aligned(cells)]
        lines += [f"in one file alone: {case}" for case in self.left_out]
        return "\n".join([*lines, "", NOTE]) + "\n"

    def json(self) -> dict[str, object]:
        """Everything."""
        rows = [{**asdict(row), "ratio": _bounds(row.ratio)} for row in self.rows]
        differences = [{"name": name, "old": old, "new": new} for name, old, new in self.differences]
        return {"rows": rows, "differences": differences, "left_out": list(self.left_out), "simulated": self.simulated}


def _bounds(ratio: Interval | None) -> dict[str, float] | None:
    return None if ratio is None else {"low": ratio.low, "middle": ratio.middle, "high": ratio.high}


def compare(old: Result, new: Result) -> Comparison:
    """ConfigError for a simulated device beside a real one, and for files that have no case in common."""
    if old.environment.simulated != new.environment.simulated:
        one, other = old.environment.label, new.environment.label
        raise ConfigError(
            f"The files are of {one} and of {other}: times on the simulated hpu are those of a host's processors, and "
            "are not compared with a device's. Give two results of real devices."
        )
    pairs = [(row, match) for row in old.rows for match in new.rows if match.case == row.case]
    if not pairs:
        raise ConfigError(
            f"The files have no case in common (the first has {_cases(old)}; the second has {_cases(new)}): measure "
            "the same shape, size, batch and precision with both."
        )
    common = [row.case for row, _ in pairs]
    left = [row.case.text for found in (old, new) for row in found.rows if row.case not in common]
    return Comparison(
        tuple(_compared(row, match) for row, match in pairs),
        tuple(_differences(old, new)),
        tuple(left),
        old.environment.simulated,
    )


def _compared(old: Row, new: Row) -> Compared:
    if old.outcome != "measured" or new.outcome != "measured":
        words = " -> ".join(row.outcome.replace("_", " ") for row in (old, new))
        return Compared(old.case.text, None, words)
    sizes = ("parameters", "units_per_step", "flops_per_step")
    for name in sizes:
        if getattr(old, name) != getattr(new, name):
            raise ConfigError(
                f"The files disagree on what {old.case.text} is: {name} is {getattr(old, name):,} and "
                f"{getattr(new, name):,}. Measure both with the same release."
            )
    ratio = ratio_interval([each.seconds for each in old.rounds], [each.seconds for each in new.rounds])
    return Compared(old.case.text, ratio, ratio.comparison)


def _differences(old: Result, new: Result) -> list[tuple[str, str, str]]:
    pairs = [(name, old.environment, new.environment) for name in Environment.model_fields]
    pairs += [(name, old.settings, new.settings) for name in Settings.model_fields]  # type: ignore[misc]
    values = [(name, getattr(one, name), getattr(other, name)) for name, one, other in pairs]
    return [(name, _plain(one), _plain(other)) for name, one, other in values if one != other]


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items()) or "none"
    return "none" if value is None else str(value)


def _cases(found: Result) -> str:
    texts = [row.case.text for row in found.rows]
    return "; ".join(texts[:3]) + ("; ..." if len(texts) > 3 else "")
