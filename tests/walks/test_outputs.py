"""An output that departs from its page is found, and what `...` stands for is not."""

from __future__ import annotations

import pytest

from tests.walks.outputs import difference

CAME = "Reading\r\x1b[32mloss 2.41\x1b[0m, 812 tokens/s  \nstep 1\nstep 2\nfinished\n"


@pytest.mark.parametrize(
    "shown",
    [
        "loss 2.41, 812 tokens/s\nstep 1\nstep 2\nfinished\n",
        "loss ..., ... tokens/s\nstep 1\n...\nfinished",
        "...\nfinished",
        "loss ...\n  ...\nstep 2\n...",
        "loss …\n…\nfinished\n...",
        "...",
        "loss 2.41, 9,000.5 tokens/s\n...",
    ],
)
def test_what_fits(shown: str) -> None:
    assert difference(shown, CAME) == ""


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("loss 2.41, 812 tokens/s\nstep 1\nstep 2", "(the end of the output)"),
        ("loss 2.41, 812 tokens/s\nstep 1\nfinished", "finished"),
        ("loss ... tokens/min\n...", "loss ... tokens/min"),
        ("loss 2.42, 812 tokens/s\n...", "loss 2.42, 812 tokens/s"),
        ("...\nstep 3\n...", "step 3"),
        ("loss 2x41...\n...", "loss 2x41..."),
    ],
)
def test_what_does_not_fit_is_shown_with_what_came(shown: str, wanted: str) -> None:
    found = difference(shown, CAME)
    assert f"the page shows: {wanted}\n" in found
    assert "  loss 2.41, 812 tokens/s\n  step 1\n" in found


def test_measured_figures_fit_each_other_and_no_others() -> None:
    shown = "step 50 loss 6.62, about 2 min left\ngoodput 51.9 % of 1 min 26 s; 12 samples"
    assert difference(shown, "step 50 loss 6.62, about 23 s left\ngoodput 7 % of 37 s; 12 samples") == ""
    assert difference(shown, "step 51 loss 6.62, about 2 min left\ngoodput 51.9 % of 1 min 26 s; 12 samples")
    assert difference(shown, "step 50 loss 6.62, about 2 min left\ngoodput 51.9 % of 1 min 26 s; 13 samples")
