"""Commands and files as the documentation shows them: what a reader copies."""

from __future__ import annotations

import re
import shlex

from ..conftest import ROOT


def blocks(page: str, heading: str) -> list[str]:
    """The fenced blocks below a heading of a page in docs/clouds, up to the next heading."""
    text = (ROOT / "docs" / "clouds" / page).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/clouds/{page} has no heading {heading!r}"
    return [part.strip("\n") for part in re.findall(r"^```\w+\n(.*?)^```$", found[1], re.MULTILINE | re.DOTALL)]


def commands(page: str, heading: str, of: str = "gaudi3-deploy") -> list[list[str]]:
    """The calls of a command there, each as its arguments; lines that go on are joined, comments left out."""
    lines = "\n".join(blocks(page, heading)).replace("\\\n", " ").splitlines()
    calls = (shlex.split(line, comments=True) for line in lines)
    return [each[1:] for each in calls if each and each[0] == of]
