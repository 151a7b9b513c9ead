"""Who pays for what: the bills of many jobs by team and project, against what they were projected to cost.

Read from the output folders of jobs, from one node each: every node of a job has the whole bill of it. Jobs that Slurm
alone knows come from its accounting (`sacct`).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gaudi3_scale.cost.bill import Bill, terms_of
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.status import read_status
from gaudi3_scale.throughput.goodput import FILE, PARTS, read

NOBODY = "(none)"
"""Team or project of a job that names none."""


@dataclass(frozen=True)
class Charge:
    """The bill of one job."""

    folder: str
    job: str | None
    team: str
    project: str
    currency: str
    spent: float
    parts: dict[str, float]
    budget: float | None
    projected: float | None
    state: str
    step: int
    max_steps: int
    price_source: str

    @property
    def forecast(self) -> float | None:
        """Of the whole job at the pace so far; what it cost, once finished; None before the first step."""
        if self.state == "finished":
            return self.spent
        return self.spent * self.max_steps / self.step if self.step and self.max_steps else None


@dataclass(frozen=True)
class Group:
    """The jobs of a team in a project."""

    team: str
    project: str
    currency: str
    jobs: tuple[Charge, ...]

    @property
    def spent(self) -> float:
        """Money so far."""
        return math.fsum(job.spent for job in self.jobs)

    @property
    def parts(self) -> dict[str, float]:
        """The same by part of the goodput."""
        return {part: math.fsum(job.parts[part] for job in self.jobs) for part in PARTS}

    @property
    def projected(self) -> float | None:
        """What the jobs were expected to cost; None where one of them has no projection."""
        return _sum([job.projected for job in self.jobs])

    @property
    def forecast(self) -> float | None:
        """What they will have cost at their pace; None where one has not begun."""
        return _sum([job.forecast for job in self.jobs])


def charge(folder: Path) -> Charge | None:
    """The bill of the job with this output folder; None where its ledger has no price.

    Raises ConfigError where there is no ledger, or where its status.json is none.
    """
    lines = list(read(folder / FILE))
    if not lines:
        raise ConfigError(
            f"{folder} has no {FILE} with a readable line: give the output_dir of a job that has started training."
        )
    bill = Bill(lines)
    spent = bill.spent()
    terms = next((found for line in reversed(lines) if (found := terms_of(line)) is not None), None)
    if spent is None or terms is None:
        return None
    status = read_status(folder)
    return Charge(
        folder=str(folder),
        job=terms.get("job"),
        team=terms.get("team") or NOBODY,
        project=terms.get("project") or NOBODY,
        currency=spent.currency,
        spent=spent.total,
        parts=spent.parts,
        budget=terms.get("budget"),
        projected=terms.get("projected"),
        state=status.get("state", "unknown"),
        step=int(status.get("step") or lines[-1]["step"]),
        max_steps=status.get("max_steps") or 0,
        price_source=str(terms.get("price_source", "")),
    )


def charges(folders: Sequence[Path], skip_unpriced: bool = False) -> list[Charge]:
    """The bills of all these jobs.

    Raises ConfigError for a job without a price (unless they are skipped), one that is given twice, and for bills in
    more than one currency.
    """
    found: list[Charge] = []
    for folder in folders:
        one = charge(folder)
        if one is None:
            if skip_unpriced:
                continue
            raise ConfigError(
                f"The job in {folder} ran without cost.node_price_per_hour, so that its cost is not known: leave it "
                "out, or give --skip-unpriced."
            )
        _add(found, one, "give the folder of one of its nodes", "ask for the jobs of each currency apart")
    if not found:
        raise ConfigError("None of the folders has a job with a price: give output folders of jobs with cost set.")
    return found


def together(found: Sequence[Charge], more: Iterable[Charge]) -> list[Charge]:
    """The charges and further ones, of Slurm's accounting.

    Raises ConfigError for a job that is there twice, for more than one currency, and where there is none.
    """
    whole = list(found)
    for one in more:
        _add(
            whole,
            one,
            "ask sacct for times that do not overlap",
            "give --currency and a price in it, or ask for the jobs of each currency apart",
        )
    if not whole:
        raise ConfigError("sacct has no job in its files: ask it for another time with -S and -E, and for all with -a.")
    return whole


def _add(whole: list[Charge], one: Charge, if_twice: str, if_mixed: str) -> None:
    """Put a job to the others. Raises ConfigError, with what to do, where it is among them or in another currency."""
    twice = next((other for other in whole if other.job == one.job), None) if one.job is not None else None
    if twice is not None:
        raise ConfigError(f"{twice.folder} and {one.folder} are the same job: {if_twice}.")
    if whole and one.currency != whole[0].currency:
        raise ConfigError(
            f"The job in {one.folder} is in {one.currency} and that in {whole[0].folder} in {whole[0].currency}: "
            f"{if_mixed}."
        )
    whole.append(one)


def groups(found: Iterable[Charge]) -> list[Group]:
    """By team and project, in the order of their names."""
    sorted_: dict[tuple[str, str], list[Charge]] = {}
    for one in found:
        sorted_.setdefault((one.team, one.project), []).append(one)
    return [Group(team, project, jobs[0].currency, tuple(jobs)) for (team, project), jobs in sorted(sorted_.items())]


def table(found: Sequence[Group]) -> list[tuple[str, ...]]:
    """Cells as text, the header first and the sum last."""
    currency = found[0].currency
    rows = [("team", "project", "jobs", f"spent, {currency}", "projected", "forecast", *PARTS)]
    whole = Group("all", "", currency, tuple(job for group in found for job in group.jobs))
    for group in [*found, whole]:
        amounts = [group.projected, group.forecast, *group.parts.values()]
        texts = ["-" if amount is None else f"{amount:,.2f}" for amount in amounts]
        rows.append((group.team, group.project, str(len(group.jobs)), f"{group.spent:,.2f}", *texts))
    return rows


def as_text(found: Sequence[Group]) -> str:
    """For a terminal: numbers to the right."""
    rows = table(found)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if n < 2 else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def as_csv(found: Sequence[Group]) -> str:
    """One row per job."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    names = (
        "team",
        "project",
        "folder",
        "job",
        "state",
        "step",
        "max_steps",
        "currency",
        "spent",
        "projected",
        "budget",
    )
    rows.writerow([*names, "forecast", *PARTS])
    for group in found:
        for job in group.jobs:
            rows.writerow([*(getattr(job, name) for name in names), job.forecast, *job.parts.values()])
    return out.getvalue()


def as_json(found: Sequence[Group]) -> str:
    """Groups with their jobs."""
    whole = [
        {
            "team": group.team,
            "project": group.project,
            "currency": group.currency,
            "spent": group.spent,
            "projected": group.projected,
            "forecast": group.forecast,
            "parts": group.parts,
            "jobs": [asdict(job) | {"forecast": job.forecast} for job in group.jobs],
        }
        for group in found
    ]
    return json.dumps(whole, indent=2) + "\n"


FORMATS: dict[str, Callable[[Sequence[Group]], str]] = {"text": as_text, "csv": as_csv, "json": as_json}


def _sum(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return math.fsum(known) if len(known) == len(amounts) else None
