"""The page of the hardware's status, from its file and the simulator's guesses; see `strictness.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "docs" / "understand" / "hardware-status.yml"
PAGE = ROOT / "docs" / "understand" / "hardware-status.md"
SEEN = ("simulated", "checked", "documents", "hardware")
ASKED = ("unknown", "assumed", "evidence", "settle")
TEXT = """\
# Hardware status: what is known of real Gaudi nodes, and what is not

<!-- Written by `make strictness` from docs/understand/hardware-status.yml and simulator/strictness.yml; edit those. -->

For whoever asks how far this is proven, or owns Gaudi nodes: what was seen where, what the sources leave open, what the
code assumes meanwhile, and what would settle each question.

{verdict} It is tested on simulated nodes, whose behaviour comes from public sources: the vendor's documentation and
source code, and transcripts that owners published.

If you own Gaudi nodes, one command collects what this page asks for:

```sh
gaudi3-train doctor --json report.json               # on a node with the trainer, as root
ansible-playbook -i mine gaudi3.scale.doctor         # from your controller: all nodes, also without the trainer
```

It changes nothing. Names, addresses, serial numbers and secrets are left out, and the report stays below 1 MB, so that
you can read it and send it on. `--cards` (`-e doctor_cards=true`) computes on the cards too, which have to be free
then. What kills or disturbs processes of its own is tried only if you name it: `--consent kill-holder`,
`--consent lost-peer`, `--consent part-of-node` (`doctor_consent`); so are cards whose addresses the IOMMU translates,
`--consent translated-iommu`.

## What was seen where

| part | covers | simulated | checked by others' programs or schemas | written from | on a Gaudi |
|---|---|---|---|---|---|
{seen}
## Unknown

"One report" means one public report of one machine, with nothing to confirm it. The last column names the sections of
the report of `gaudi3-train doctor` that answer the question.
{unknown}
## What the simulator guesses

Where nobody has published what hardware does, the simulator takes the stricter guess. `simulator/strictness.yml` has
all of its rules; these are the guesses.

{guesses}
## Next

- [simulator.md](simulator.md): how the simulator works and is checked.
"""
NEVER = "Nothing in this collection has run on a Gaudi yet."
HEADINGS = "| id | unknown | the code assumes | evidence | to settle it | report |\n|---|---|---|---|---|---|\n"


def read() -> dict[str, Any]:
    """The data, checked; ValueError names what is wrong."""
    data: dict[str, Any] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    for row in data["seen"]:
        if set(row) - {"covers"} != {"part", *SEEN}:
            raise ValueError(f"{row.get('part')}: give part, {', '.join(SEEN)}, each a text or false.")
    rows = questions(data)
    for row in rows:
        if set(row) != {"id", *ASKED, "report"} or not row["report"]:
            raise ValueError(f"{row.get('id')}: give id, {', '.join(ASKED)} and report with a section at least.")
    ids = [row["id"] for row in rows]
    twice = {each for each in ids if ids.count(each) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} stands twice in {SOURCE.name}.")
    return data


def questions(data: dict[str, Any]) -> list[dict[str, Any]]:
    """All questions, of all areas."""
    return [row for area in data["unknown"] for row in area["rows"]]


def page(guesses: str) -> str:
    """The whole page."""
    data = read()
    seen = "".join(
        f"| {row['part']} | {_names(row.get('covers', []))} | " + " | ".join(row[key] or "no" for key in SEEN) + " |\n"
        for row in data["seen"]
    )
    unknown = ""
    for area in data["unknown"]:
        lines = "".join(_line(row) for row in area["rows"])
        unknown += f"\n### {area['area']}\n\n{HEADINGS}{lines}"
    places = [row["part"] for row in data["seen"] if row["hardware"]]
    verdict = f"On a Gaudi ran: {'; '.join(places)}. The rest has not." if places else NEVER
    return TEXT.format(verdict=verdict, seen=seen, unknown=unknown, guesses=guesses)


def _line(row: dict[str, Any]) -> str:
    return f"| {row['id']} | " + " | ".join(row[key] for key in ASKED) + f" | {_names(row['report'])} |\n"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
