"""The linter on public configurations: silent on each as its author meant it, and not on one planted disagreement."""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fabric_planted import EDITS, nested

from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.rules import lint, read, wanted
from tests.suite.proof import Proof

SOURCES = os.environ.get("CONTRACT_SOURCES", "")
TEXT = """
Public configurations of switches, each at the commit of its repository that `public.toml` names, and what is wanted of
one port of it: the values that its author set there, read off by hand, and no pause where none is set. On the file as
it is the linter finds nothing.
Then one value of that port is changed in the text for each rule that something is wanted of, a line that nobody
understands is added, a host sends larger frames, and a port is asked for that is not there: each is found, and nothing
else is. `planted` has those rules. The files of SONiC are what its tools are tested with; those that are dumps of the
database are read as its file. This is no sample: the files were picked from those without a line that the linter does
not understand, after it had learned on the same repositories which lines are about other subjects. Of 187 files of EOS
and NX-OS there with a frame size or a VLAN on a port, 14 have a line that it names as not understood. No public
configuration of Cumulus Linux in `nv set` commands was found that is whole.
Nothing of this was run on a switch.
"""


@dataclass(frozen=True)
class Public:
    """A public configuration, and what its author set on one port."""

    repository: str
    commit: str
    syntax: str
    path: str
    sha256: str
    port: str
    wanted: dict[str, Any]

    @property
    def name(self) -> str:
        """Case of the proof."""
        folders = {"eos": 4, "sonic": 2}
        return f"{self.syntax} {'/'.join(self.path.split('/')[-folders.get(self.syntax, 1) :])}"


def rows() -> dict[str, Public]:
    """The configurations by their names."""
    listed = tomllib.loads((Path(__file__).parent / "public.toml").read_text())
    found = [
        Public(each["name"], each["commit"], each["syntax"], **file)
        for each in listed["repository"]
        for file in each["file"]
    ]
    return {each.name: each for each in found}


ROWS = rows()
PROOF = Proof(
    "fabric-lint",
    {syntax: [name for name, row in ROWS.items() if row.syntax == syntax] for syntax in ("eos", "nxos", "sonic")},
)


def test_there_are_as_many_as_were_promised() -> None:
    assert len(ROWS) >= 40
    assert len({row.sha256 for row in ROWS.values()}) == len(ROWS), "each is another file"
    for row in ROWS.values():
        assert set(row.wanted) >= {"pfc"} and set(row.wanted) & {"mtu", "vlan"}, row.name


@pytest.mark.proof
@pytest.mark.parametrize("name", ROWS)
def test_silent_as_it_is_and_not_on_one_disagreement(name: str) -> None:
    PROOF.skip_if_held(name)
    row = ROWS[name]
    file = Path(SOURCES or "/nowhere") / row.repository / row.path
    if not file.is_file():
        PROOF.cannot_run(name, f"CONTRACT_SOURCES has no {row.repository} with this file")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != row.sha256:
        PROOF.cannot_run(name, f"CONTRACT_SOURCES has another commit of {row.repository} than {row.commit[:12]}")
    text = nested(content.decode()) if row.syntax == "sonic" else content.decode()
    goal = wanted(row.wanted)
    assert lint(read("leaf", row.syntax, text), [row.port], goal) == []
    planted = [rule for rule in row.wanted if rule in EDITS[row.syntax]] + ["unread"]
    for rule in planted:
        spoilt = read("leaf", row.syntax, EDITS[row.syntax][rule](text, row.port))
        assert [each.rule for each in lint(spoilt, [row.port], goal)] == [rule], rule
    switch = read("leaf", row.syntax, text)
    if "mtu" in row.wanted:
        planted.append("host-mtu")
        found = lint(switch, [row.port], goal, {row.port: row.wanted["mtu"] + 1})
        assert [each.rule for each in found] == ["host-mtu"]
    planted.append("no-port")
    assert [each.rule for each in lint(switch, ["Ethernet99/99"], goal)] == ["no-port"]
    given = ", ".join(f"{rule} {value}" for rule, value in row.wanted.items())
    PROOF.note(
        name,
        {"port": row.port, "wanted": given, "planted": ", ".join(planted), "at": f"{row.repository}@{row.commit[:12]}"},
    )
    PROOF.write_table("The fabric linter on public configurations", TEXT, ["at", "port", "wanted", "planted"])
