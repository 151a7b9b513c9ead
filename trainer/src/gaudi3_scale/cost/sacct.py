"""Jobs of Slurm's accounting as charges, from the text that `sacct` prints.

    sacct -P -X -T -a -D -S 2026-11-01 -E 2026-12-01 -o JobIDRaw,Account,State,ElapsedRaw,AllocTRES > november.txt

Slurm knows cards and time, no price and no goodput: a job costs its cards times its hours times a price, and all of it
is `other`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from gaudi3_scale.cost.chargeback import NOBODY, Charge
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.goodput import PARTS

FIELDS = ("JobIDRaw", "Account", "State", "ElapsedRaw", "AllocTRES")
COMMAND = f"sacct -P -X -T -o {','.join(FIELDS)}"
"""-T: of a job that ran longer, only what lies between -S and -E, so that no month pays for another."""
#: What sacct prints instead where nothing is accounted.
DISABLED = "Slurm accounting storage is disabled"
GRES = "gres/gpu"
"""What counts as a card, as the role `slurm` sets it up and as limits of teams count it."""
#: Of AllocTRES: how many of a gres, or of one type of it.
_TRES = re.compile(r"(?P<name>gres/[^:=]+)(?P<type>:[^=]+)?=(?P<count>[0-9]+)")


def read(path: Path, price: float, currency: str, gres: str = GRES) -> list[Charge]:
    """One charge for each job of a file; `price` is of a card for an hour, `gres` what counts as one.

    A job that was requeued has a line for each time that it ran where sacct was asked with -D; they are added up. Steps
    (12.batch) are part of their job and are skipped. A column Cluster keeps jobs of several clusters apart.
    Raises ConfigError for a file that is none, for a line that cannot be read, for a job of two accounts, and where
    jobs have other things of a gres and none has a card.
    """
    found: dict[str, Charge] = {}
    others: set[str] = set()
    has_cards = False
    for number, row in _rows(path):
        job = row.get("JobIDRaw") or row["JobID"]
        if "." in job:
            continue
        job = " ".join(each for each in (row.get("Cluster"), job) if each)
        if not re.fullmatch("[0-9]{1,12}", row["ElapsedRaw"]):
            raise ConfigError(
                f"Line {number} of {path} has the ElapsedRaw {row['ElapsedRaw']!r}: give what `{COMMAND}` prints, "
                "whose ElapsedRaw are seconds."
            )
        hours = int(row["ElapsedRaw"]) / 3600
        count = cards(row["AllocTRES"], gres)
        has_cards = has_cards or count > 0
        others |= {match["name"] for match in _counted(row["AllocTRES"])}
        spent = count * hours * price
        earlier = found.get(job)
        found[job] = _charge(path, job, row, currency, spent + (earlier.spent if earlier is not None else 0.0))
        if earlier is not None and earlier.team != found[job].team:
            raise ConfigError(
                f"Line {number} of {path} has job {job} of the account {found[job].team}, which is of {earlier.team} "
                "above: two clusters have jobs of the same number, so ask with the column Cluster, too."
            )
    if others and not has_cards:
        raise ConfigError(
            f"No job of {path} has {gres}, and some have {', '.join(sorted(others))}: name what counts as a card with "
            "--gres."
        )
    return list(found.values())


def cards(tres: str, gres: str = GRES) -> int:
    """The cards of AllocTRES: what `gres/gpu=8` says, or where only types of it are counted the sum of them."""
    counts = {match["name"] + (match["type"] or ""): int(match["count"]) for match in _counted(tres)}
    return counts.get(gres, sum(count for name, count in counts.items() if name.startswith(f"{gres}:")))


def _counted(tres: str) -> list[re.Match[str]]:
    return [match for each in tres.split(",") if (match := _TRES.fullmatch(each.strip()))]


def _charge(path: Path, job: str, row: dict[str, str], currency: str, spent: float) -> Charge:
    state = row["State"].split(" ")[0].lower()  # CANCELLED by 1000
    return Charge(
        folder=f"{path}:{job}",
        job=f"slurm {job}",
        team=row["Account"] or NOBODY,
        project=row.get("WCKey", "").removeprefix("*") or NOBODY,
        currency=currency,
        spent=spent,
        parts={part: spent if part == "other" else 0.0 for part in PARTS},
        budget=None,
        projected=None,
        state="finished" if state not in ("running", "pending", "suspended", "requeued") else state,
        step=0,
        max_steps=0,
        price_source="--card-price",
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): give what `{COMMAND}` printed.") from None
    if lines and DISABLED in lines[0]:
        raise ConfigError(f"{path} says that {DISABLED}: set accounting up with slurmdbd, and ask sacct again.")
    names = lines[0].split("|") if lines else []
    missing = [name for name in FIELDS if name not in names and not (name == "JobIDRaw" and "JobID" in names)]
    if missing:
        raise ConfigError(f"{path} has no column {', '.join(missing)} in its first line: give what `{COMMAND}` prints.")
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("|")
        if not line.strip():
            continue
        if len(cells) != len(names):
            raise ConfigError(
                f"Line {number} of {path} has {len(cells)} cells under {len(names)} names: leave out columns whose "
                "texts may hold a |, such as JobName."
            )
        yield number, dict(zip(names, cells, strict=True))


def checked_price(price: float | None) -> float:
    """The price of a card for an hour. Raises ConfigError where there is none."""
    if price is None or not math.isfinite(price) or price < 0:
        raise ConfigError(
            "--sacct needs the price of a card for an hour, which Slurm does not know: give --card-price."
        )
    return price
