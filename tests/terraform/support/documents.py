"""Commands and files as the documentation shows them: what a reader copies."""

from __future__ import annotations

import re
import shlex
import textwrap

from ..conftest import ROOT


def blocks(page: str, heading: str) -> list[str]:
    """The indented blocks below a heading of a page in docs/, up to the next heading."""
    text = (ROOT / "docs" / "clouds" / page).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/clouds/{page} has no heading {heading!r}"
    parts = re.findall(r"(?:^    .*\n|^\n)+", found[1], re.MULTILINE)
    return [textwrap.dedent(each).strip("\n") for each in parts if each.strip()]


def commands(page: str, heading: str, of: str = "gaudi3-deploy") -> list[list[str]]:
    """The calls of a command there, each as its arguments; lines that go on are joined, comments left out."""
    lines = "\n".join(blocks(page, heading)).replace("\\\n", " ").splitlines()
    calls = (shlex.split(line, comments=True) for line in lines)
    return [each[1:] for each in calls if each and each[0] == of]
