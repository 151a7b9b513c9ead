"""Filters are there before a process is forked for a task."""

from __future__ import annotations

import json
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


from ansible_collections.gaudi3.scale.plugins.plugin_utils.loaded_filters import load_filters

load_filters()
first = len(found)
print(json.dumps([first, loaded("ansible.builtin.to_json", "regex_replace", "gaudi3.scale.printable")]))
"""


def test_a_template_loads_none_any_more() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / "collections")], capture_output=True, text=True, check=True
    )
    before, after = json.loads(run.stdout)
    assert before >= len(list((ROOT / "plugins/filter").glob("[a-z]*.py")))
    assert after == 0
