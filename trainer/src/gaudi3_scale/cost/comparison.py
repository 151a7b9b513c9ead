"""What a comparison finds, with its picture and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gaudi3_scale.cost.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison(Estimates):
    """Estimates side by side, with the inputs that they are made from."""

    def plot_tco_breakdown(self, path: str | Path | None = None) -> Figure:
        """Bars of the costs by component, with the range of each total; written as PNG to `path`.

        Needs matplotlib (extra `report`); a TrainerError without it, and where the file cannot be written.
        """
        from gaudi3_scale.cost.pictures import breakdown, write_png

        figure = breakdown(self)
        if path is not None:
            write_png(figure, Path(path))
        return figure

    def generate_report(self, path: str | Path) -> Path:
        """Write the report as the suffix says: .pdf, .html, .csv, .json or .txt; replaced atomically. Returns its path.

        A ConfigError for another suffix; a TrainerError where the file cannot be written.
        """
        from gaudi3_scale.cost.report import write

        return write(self, Path(path))
