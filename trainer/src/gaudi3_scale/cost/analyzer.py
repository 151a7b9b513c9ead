"""What a training costs on several platforms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.cost.comparison import Comparison
from gaudi3_scale.cost.inputs import Inputs, load
from gaudi3_scale.cost.model import estimate
from gaudi3_scale.cost.platforms import PLATFORMS, platform
from gaudi3_scale.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class CostAnalyzer:
    """Compares platforms from inputs that have a source and a date; no price is built in.

    >>> prices = {
    ...     "gaudi3": {"node_price_per_hour": {"value": 80, "source": "an example", "date": "2026-11-23"},
    ...                "mfu": {"value": [0.20, 0.40], "source": "an example", "date": "2026-11-23"}},
    ...     "h100": {"node_price_per_hour": {"value": 80, "source": "an example", "date": "2026-11-23"},
    ...              "mfu": {"value": [0.30, 0.40], "source": "an example", "date": "2026-11-23"}},
    ...     "a100": {"node_price_per_hour": {"value": 80, "source": "an example", "date": "2026-11-23"},
    ...              "mfu": {"value": [0.30, 0.40], "source": "an example", "date": "2026-11-23"}},
    ... }
    >>> analyzer = CostAnalyzer({"offers": prices})
    >>> found = analyzer.compare_training_cost(
    ...     model_size="70B", dataset_tokens="1T", platforms=["gaudi3", "h100", "a100"], include_energy=True
    ... )
    >>> [(each.offer, each.total.text()) for each in found.estimates]
    [('gaudi3', '1,589,464 to 3,178,928'), ('h100', '2,947,915 to 3,930,553'), ('a100', '9,348,291 to 12,464,387')]
    >>> found.cheapest is None  # the first two ranges overlap
    True

    Nothing is assumed where an input is missing:

    >>> CostAnalyzer().compare_training_cost(model_size="70B", dataset_tokens="1T", platforms=["h100"])
    Traceback (most recent call last):
    gaudi3_scale.errors.ConfigError: No node_price_per_hour of h100 is given and none is built in: add \
offers.h100.node_price_per_hour to the inputs, with its source and date, as node_price_per_hour: \
{value: 12.5, source: where it is from, date: 2026-11-23}.
    """

    def __init__(self, inputs: Inputs | dict[str, Any] | str | Path | None = None) -> None:
        """`inputs` is a mapping or the path of a YAML file, see docs/use/cost.md."""
        self.inputs = load(inputs)
        self._found: Comparison | None = None

    def compare_training_cost(
        self,
        model_size: str | float | None = None,
        dataset_tokens: str | float | None = None,
        platforms: Sequence[str] | None = None,
        include_energy: bool = True,
    ) -> Comparison:
        """Estimate each of `platforms`: names of offers in the inputs, or of platforms; all offers without it.

        What is given here overrides the inputs' `job`. With `include_energy`, the power of owned nodes is paid for;
        that of rented ones is in their price. Raises ConfigError for an input that is missing.
        """
        given = {"model_size": model_size, "dataset_tokens": dataset_tokens}
        job = self.inputs.job.model_copy(update={name: value for name, value in given.items() if value is not None})
        inputs = self.inputs.model_copy(update={"job": job})
        names = tuple(platforms) if platforms is not None else tuple(inputs.offers)
        if not names:
            raise ConfigError(
                f"No platform is given: give platforms=, of {', '.join(PLATFORMS)}, or offers in the inputs."
            )
        for name in names:
            platform(inputs.platform(name))
        self._found = Comparison(
            inputs, include_energy, tuple(estimate(inputs, name, include_energy) for name in names)
        )
        return self._found

    def plot_tco_breakdown(self, path: str | Path | None = None) -> Figure:
        """`Comparison.plot_tco_breakdown` of the last comparison; of all offers if nothing has been compared yet."""
        return self._comparison().plot_tco_breakdown(path)

    def generate_report(self, path: str | Path) -> Path:
        """`Comparison.generate_report` of the last comparison; of all offers if nothing has been compared yet.

        >>> import tempfile
        >>> price = {"value": 80, "source": "an example", "date": "2026-11-23"}
        >>> share = {"value": 0.4, "source": "an example", "date": "2026-11-23"}
        >>> analyzer = CostAnalyzer({"offers": {"h100": {"node_price_per_hour": price, "mfu": share}}})
        >>> analyzer.generate_report(tempfile.mkdtemp() + "/cost_analysis.csv").read_text().splitlines()[0]
        'offer,quantity,unit,low,high,source,date'
        """
        return self._comparison().generate_report(path)

    def _comparison(self) -> Comparison:
        return self._found or self.compare_training_cost()
