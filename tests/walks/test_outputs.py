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
        ("...\nstep 3\n...", "step 3"),
        ("loss 2x41...\n...", "loss 2x41..."),
    ],
)
def test_what_does_not_fit_is_shown_with_what_came(shown: str, wanted: str) -> None:
    found = difference(shown, CAME)
    assert f"the page shows: {wanted}\n" in found
    assert "  loss 2.41, 812 tokens/s\n  step 1\n" in found
