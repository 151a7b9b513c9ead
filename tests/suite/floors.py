"""The coverage that the unit tests of each area reached, held against its floor, which only rises.

The parts of `make test` that trace leave their measurements in `.cache/coverage`. `check` sums them up and fails below
a floor; `raise` lifts the floors to what was reached.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / ".cache" / "coverage"
FLOORS = Path(__file__).with_name("floors.toml")
RCFILE = Path(__file__).with_name("coveragerc")
AREAS = {
    "plugins": "plugins/",
    "trainer": "trainer/src/",
    "benchmark": "benchmark-tool/src/",
    "doctor": "doctor/src/",
    "migration": "migration/src/",
    "watch": "watch/src/",
    "deploy": "deploy/src/",
    "simulator": "simulator/src/",
}
MARGIN = 0.5
"""Percentage points below what was reached: a race in a test may leave a few lines unvisited."""


@dataclass
class Reached:
    """Lines and branches of an area."""

    covered: int = 0
    total: int = 0

    @property
    def percent(self) -> float:
        return 100.0 * self.covered / self.total if self.total else 0.0


def environment() -> dict[str, str]:
    """What the configuration of coverage refers to."""
    return {**os.environ, "GAUDI3_ROOT": str(ROOT), "GAUDI3_COVERAGE": str(DATA / "all" / "data")}


def measure() -> dict[str, Reached]:
    """Sum up all measurements; a file that no test imports counts with all its lines."""
    (DATA / "all").mkdir(parents=True, exist_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    folders = [str(path) for path in sorted(DATA.iterdir()) if path.is_dir() and path.name != "all"]
    if not folders:
        sys.exit("There are no measurements: run the parts of `make test` first that leave some, such as `make unit`.")
    for step in (
        [*coverage, "combine", "--keep", "--quiet", f"--rcfile={RCFILE}", *folders],
        [*coverage, "json", "--quiet", f"--rcfile={RCFILE}", "-o", str(DATA / "all" / "report.json")],
    ):
        done = subprocess.run(step, env=environment(), cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"'{' '.join(step[2:4])}' failed: {(done.stdout + done.stderr).strip()}")
    report = json.loads((DATA / "all" / "report.json").read_text())
    reached = {area: Reached() for area in AREAS}
    for name, file in report["files"].items():
        for area, prefix in AREAS.items():
            if name.startswith(prefix):
                summary = file["summary"]
                reached[area].covered += summary["covered_lines"] + summary["covered_branches"]
                reached[area].total += summary["num_statements"] + summary["num_branches"]
    return reached


def read_floors(text: str) -> dict[str, float]:
    """The floors in the text of floors.toml."""
    return {area: float(value) for area, value in tomllib.loads(text).items()}


def failures(reached: dict[str, float], floors: dict[str, float]) -> list[str]:
    """One sentence for each area below its floor."""
    return [
        f"The coverage of {area} is {reached[area]:.1f} %, below its floor of {floor:.1f} %: test what was added."
        for area, floor in floors.items()
        if reached[area] < floor
    ]


def raised(text: str, reached: dict[str, float]) -> str:
    """The text of floors.toml with the floors lifted to just below what was reached; none is lowered."""
    floors = read_floors(text)
    result = io.StringIO()
    for line in text.splitlines():
        area = line.split(" = ")[0]
        if area in floors:
            line = f"{area} = {max(floors[area], int((reached[area] - MARGIN) * 10) / 10)}"
        result.write(line + "\n")
    return result.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["check", "raise"])
    command = parser.parse_args().command
    reached = {area: each.percent for area, each in measure().items()}
    floors = read_floors(FLOORS.read_text())
    print(f"{'area':<12}{'reached':>9}{'floor':>8}")
    for area in AREAS:
        print(f"{area:<12}{reached[area]:>8.1f}%{floors[area]:>7.1f}%")
    if command == "raise":
        FLOORS.write_text(raised(FLOORS.read_text(), reached))
        return 0
    problems = failures(reached, floors)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
