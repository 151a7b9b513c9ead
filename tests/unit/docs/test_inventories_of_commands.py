"""Every command of the documents that works on nodes names an inventory: without one it would do nothing."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: Playbooks that ask no host.
ALONE = {"new_inventory", "provision"}


def test_each_command_gives_an_inventory() -> None:
    found, wrong = 0, []
    for path in [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("roles/*/README.md"),
        *ROOT.glob("playbooks/*.yml"),
    ]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for options, name in re.findall(r"ansible-playbook ((?:-\S+ \S+ )*)gaudi3\.scale\.(\w+)", line):
                found += 1
                if name not in ALONE and "-i " not in options:
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {name}")
    assert found > 40
    assert wrong == []
