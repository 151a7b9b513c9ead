"""What is there before a process is forked for a task."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import json
import sys

from ansible.plugins.loader import filter_loader, init_plugin_loader

init_plugin_loader([sys.argv[1]])
found = []
usual = filter_loader._load_module_source
filter_loader._load_module_source = lambda *args, **given: (found.append(1), usual(*args, **given))[1]


def loaded(*names):
    del found[:]
    for name in names:
        assert filter_loader.get(name) is not None, name
    return len(found)


from ansible_collections.gaudi3.scale.plugins.plugin_utils.forks import load_filters

load_filters()
first = len(found)
print(json.dumps([first, loaded("ansible.builtin.to_json", "regex_replace", "gaudi3.scale.printable")]))
"""
LOOKUP = """
import gc

from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        return [f'{gc.get_freeze_count()} of {gc.get_threshold()[0]}']
"""
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "frozen: {{ lookup('frozen') }}"
"""


def test_a_template_loads_none_any_more() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / "collections")], capture_output=True, text=True, check=True
    )
    before, after = json.loads(run.stdout)
    assert before >= len(list((ROOT / "plugins/filter").glob("[a-z]*.py")))
    assert after == 0


def test_a_task_looks_for_no_garbage_among_what_was_there_before_its_play(tmp_path: Path) -> None:
    (tmp_path / "lookup_plugins").mkdir()
    (tmp_path / "lookup_plugins/frozen.py").write_text(LOOKUP)
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(PLAYBOOK)
    env = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "ANSIBLE_STDOUT_CALLBACK": "gaudi3.scale.progress",
    }
    run = subprocess.run(
        ["ansible-playbook", str(playbook)], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    frozen = re.search(r"frozen: (\d+) of 50000\b", run.stdout)
    assert frozen and int(frozen[1]) > 10_000, run.stdout
