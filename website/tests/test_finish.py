"""What the theme leaves to mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from website import finish


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<div class="highlight"><pre><span>', '<div class="highlight"><pre tabindex="0"><span>'),
        (
            '<div class="table-wrapper colwidths">',
            '<div class="table-wrapper colwidths" tabindex="0">',
        ),
        ('<ul class="ansible-links" aria-role="list">', '<ul class="ansible-links">'),
        ('<th class="head"><p></p></th>', "<td></td>"),
        ('<th class="head"><p>x</p></th>', '<th class="head"><p>x</p></th>'),
        ('<span class="pre">gaudi3-train</span>', '<span class="pre whole">gaudi3-train</span>'),
        (f'<span class="pre">{"x" * 29}</span>', f'<span class="pre">{"x" * 29}</span>'),
        (
            '<li class="toctree-l3"><a class="reference" href="a.html">HpuMemoryErrorUncorrected</a></li>',
            '<li class="toctree-l3"><a class="reference" href="a.html">Hpu<wbr>Memory<wbr>Error<wbr>Uncorrected</a>'
            "</li>",
        ),
    ],
)
def test_a_page_is_mended(before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(before)
    finish.finish(tmp_path)
    assert (tmp_path / "a.html").read_text() == after
