"""The callback that shows a run, as Ansible calls it: one small playbook, and the same with details."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from .cluster import Cluster

ESCAPE = "\x1b[31m"
TASKS: list[dict[str, Any]] = [
    {"name": "Write a file", "ansible.builtin.copy": {"content": f"one\n{ESCAPE}two\n" + "x" * 200, "dest": "@/file"}},
    {
        "name": "Write it again",
        "ansible.builtin.copy": {"content": f"one\n{ESCAPE}two\n" + "x" * 200, "dest": "@/file"},
    },
    {"name": "Say something", "ansible.builtin.debug": {"msg": ["It is done.", f"Foreign {ESCAPE} text."]}},
    {"name": "Show a variable", "ansible.builtin.debug": {"var": "answer"}, "vars": {"answer": {"key": "value"}}},
    {"name": "Try", "ansible.builtin.fail": {"msg": "Nobody minds."}, "ignore_errors": True},
    {
        "block": [{"name": "Fall", "ansible.builtin.fail": {"msg": "It is caught."}}],
        "rescue": [{"name": "Catch", "ansible.builtin.debug": {"msg": "Caught."}}],
    },
    {
        "name": "Fail in a loop",
        "ansible.builtin.command": {"argv": ["sh", "-c", "echo 'no such {{ item }}' >&2; exit 1"]},
        "loop": ["disk", "card"],
        "when": "fails | default(false)",
    },
]


def playbook(cluster: Cluster) -> str:
    cluster.add("gaudi-1", "gaudi", cards=0)
    path = cluster.folder / "mine.yml"
    play = {"name": "My play", "hosts": "gaudi", "gather_facts": False, "tasks": TASKS}
    path.write_text(json.dumps([play]).replace("@/", f"{cluster.folder}/"))
    return str(path)


def test_a_run_shows_phases_messages_and_what_failed_at_its_end(cluster: Cluster) -> None:
    shows = {"ANSIBLE_STDOUT_CALLBACK": "gaudi3.scale.progress"}
    path = playbook(cluster)
    good = cluster.play(path, "--diff", environment=shows)
    lines = good.output.splitlines()
    assert good.returncode == 0, good.output
    assert lines[0] == "My play ..." and lines[1] == "gaudi-1: Write a file"
    # The difference is there in full, and no character of it acts on the terminal.
    assert "+\\x1b[31mtwo" in lines and "+" + "x" * 200 in lines and "\x1b" not in good.output
    said = lines[lines.index("It is done.") :]
    assert said[:2] == ["It is done.", r"Foreign \x1b[31m text."] and "Caught." in said
    assert "value" in good.output and "Nobody minds" not in good.output and "It is caught" not in good.output
    assert said[-3].split() == ["My", "play", "gaudi", "(1)", "1", "changed", *said[-3].split()[-1:]]
    assert said[-2].strip() == "Write a file" and said[-1].startswith("Finished in 0:")
    kept = list((cluster.folder / "home/.local/state/gaudi3-scale").glob("*/progress.json"))
    assert [json.loads(each.read_text())["runs"][0]["phases"][0][0] for each in kept] == ["My play"]

    bad = cluster.play(path, "-v", environment=shows, fails=True)
    # Ansible's own details, and behind them what failed.
    assert bad.returncode != 0 and "TASK [Write a file]" in bad.output and "PLAY RECAP" in bad.output
    ends = bad.output[bad.output.index("PLAY RECAP") :].splitlines()
    ends = ends[next(n for n, line in enumerate(ends) if line.startswith("Stopped after 0:")) :]
    assert ends[1:3] == ["  My play: Fail in a loop", "    on gaudi-1"]
    # The wording of the first is Ansible's, and has changed.
    assert "non-zero return code" in ends[3] and ends[4:6] == ["    no such disk", "    no such card"]
    assert (
        ends[-1]
        == f"  ansible-playbook {path} -i {cluster.folder}/inventory/hosts.yml --forks 5 -e '{{\"fails\": true}}' -v"
    )
    assert len(json.loads(kept[0].read_text())["runs"]) == 1, "the times of a run that failed are not kept"


@pytest.mark.parametrize("file", ["ansible.cfg", "examples/inventory/ansible.cfg"])
def test_it_is_the_default_of_the_checkout_and_of_a_new_inventory(file: str) -> None:
    text = (Path(__file__).resolve().parents[2] / file).read_text()
    assert "\nstdout_callback = gaudi3.scale.progress\n" in text


def test_molecule_reads_the_recap_of_ansibles_own_output() -> None:
    """It finds a second run that changes something by it, and would find none in other output."""
    config = yaml.safe_load((Path(__file__).resolve().parents[2] / "extensions/molecule/config.yml").read_text())
    assert config["ansible"]["env"]["ANSIBLE_STDOUT_CALLBACK"] == "ansible.builtin.default"
