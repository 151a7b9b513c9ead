"""The pictures of the documents, each with what makes it; `make docs-pictures` makes those that need no nodes.

    python -m tests.walks.pictures docs/use/plan.png      some of them alone

They are made from the commands and inputs that their pages show. Look at each one before you commit it.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from .markdown import ROOT

COLOURS = 128
"""Of the palette that pictures are stored with: the archive of the collection carries them."""
INPUTS = "examples/cost/inputs.yml"
PLAN = (
    "gaudi3-train plan model.name=llama-3.1-70b model.sequence_length=4096 train.precision=bf16-mixed "
    f"--inputs {INPUTS} --tokens 1T --devices 8,16,64,128,512 --html REPORT"
)
BENCHMARK = (
    "gaudi3-benchmark run --to RESULT --shape llama-tiny --shape diffusion-unet-tiny --batch 1 --batch 2 --batch 4 "
    "--batch 8 --precision 32-true --precision bf16-mixed --device cpu --repeats 5 --threads 1 && "
    "gaudi3-benchmark report RESULT --to REPORT"
)


@dataclass(frozen=True)
class Maker:
    """How a picture comes to be."""

    command: str
    """What somebody types to make it again, or why nothing does."""
    make: Callable[[Path], None] | None = None
    """Writes it into the checkout; None where another command of the Makefile does, or a person."""


def in_report(command: str, shown: str) -> Callable[[Path], None]:
    """A maker by a command that writes a page of HTML: the picture whose text begins so."""

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.html"
            line = command.replace("REPORT", str(report)).replace("RESULT", str(Path(folder) / "result.json"))
            subprocess.run(["bash", "-c", line], cwd=ROOT, check=True)
            pictures = re.findall(
                r'<img alt="([^"]*)" src="data:image/png;base64,([^"]+)"', report.read_text(encoding="utf-8")
            )
        (found,) = [content for text, content in pictures if text.startswith(shown)]
        store(b64decode(found), target)

    return make


def first_page(target: Path) -> None:
    """The first page of the PDF that `gaudi3-train cost --report` writes."""
    from gaudi3_scale.cost import CostAnalyzer, pdf

    found = CostAnalyzer(ROOT / INPUTS).compare_training_cost()
    picture = io.BytesIO()
    pdf._summary(found).savefig(picture, dpi=94, format="png")
    store(picture.getvalue(), target)


def store(content: bytes, target: Path) -> None:
    """Write a picture with a small palette."""
    with Image.open(io.BytesIO(content)) as picture:
        small = picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
        small.save(target, optimize=True)


COST = f"gaudi3-train cost {INPUTS} --report REPORT"
PICTURES = {
    "docs/clouds/aws.svg": Maker("drawn by hand, from the resources of terraform/aws"),
    "docs/operate/prometheus-alerts.png": Maker("make screenshots"),
    "docs/start/demo.svg": Maker("make docs-recording"),
    "docs/understand/architecture.svg": Maker("python -m tests.suite.architecture"),
    "docs/use/benchmark-rates.png": Maker(BENCHMARK, in_report(BENCHMARK, "Rate by batch size")),
    "docs/use/cost-break-even.png": Maker(COST, in_report(COST, "Break-even")),
    "docs/use/cost-breakdown.png": Maker(COST, in_report(COST, "Cost by what it is for")),
    "docs/use/cost-report.png": Maker(f"gaudi3-train cost {INPUTS} --report cost.pdf", first_page),
    "docs/use/plan.png": Maker(PLAN, in_report(PLAN, "Largest batch of a device")),
    "docs/use/watch-cluster.png": Maker("make watch-pictures"),
    "docs/use/watch-job.png": Maker("make watch-pictures"),
}


def main(names: list[str]) -> None:
    """Make the named ones, or all that can be made here."""
    for name in names or [name for name, maker in PICTURES.items() if maker.make]:
        make = PICTURES[name].make
        if make is None:
            sys.exit(f"{name} is not made here: {PICTURES[name].command}")
        print(name, flush=True)
        make(ROOT / name)


if __name__ == "__main__":
    main(sys.argv[1:])
