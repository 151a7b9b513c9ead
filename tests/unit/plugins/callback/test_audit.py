"""What a run of a playbook leaves in the record: every change, who made it, and no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._audit import chain
from ansible_collections.gaudi3.scale.plugins.module_utils._audit.verify import verify
from tests.ansible_run import ANSIBLE_PLAYBOOK

ROOT = Path(__file__).resolve().parents[4]
PLAY = """
- name: Change files
  hosts: all
  gather_facts: false
  tasks:
    - name: Write a file
      ansible.builtin.copy: {content: "new\\n", dest: "{{ playbook_dir }}/{{ inventory_hostname }}", mode: "0600"}
    - name: Write a secret
      ansible.builtin.copy: {content: "s3cret", dest: "{{ playbook_dir }}/secret", mode: "0600"}
      no_log: true
      when: inventory_hostname == 'one'
    - name: Remember something
      ansible.builtin.set_fact: {mine: 1}
    - name: Make folders
      ansible.builtin.file: {path: "{{ playbook_dir }}/{{ item }}", state: directory, mode: "0700"}
      loop: [first, second]
      when: inventory_hostname == 'one'
    - name: Only predict
      ansible.builtin.copy: {content: "x", dest: "{{ playbook_dir }}/never", mode: "0600"}
      check_mode: true
    - name: Fail
      ansible.builtin.command: "false"
      when: inventory_hostname == 'two'
"""


def play(folder: Path, *options: str, **more: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    (folder / "site.yml").write_text(PLAY)
    file = folder / "state/audit.jsonl"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    given = {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "ANSIBLE_CALLBACKS_ENABLED": "gaudi3.scale.audit",
        "ANSIBLE_DIFF_ALWAYS": "true",
        "GAUDI3_AUDIT": str(file),
        "HOME": str(folder),
        "SUDO_USER": "ann",
    }
    command = [
        *ANSIBLE_PLAYBOOK,
        "-i",
        "one,two,",
        "-c",
        "local",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        *options,
        str(folder / "site.yml"),
    ]
    done = subprocess.run(
        command, env={**kept, **given, **more}, cwd=folder, capture_output=True, text=True, check=False
    )
    return done, [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def test_every_change_and_who_made_it(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old\n")
    done, found = play(tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert verify(chain.lines(str(tmp_path / "state/audit.jsonl"))).problem == ""
    assert [each["result"] for each in (found[0], found[-1])] == ["begun", "failed"]
    assert found[-1]["failed_hosts"] == ["two"] and found[-1]["changes"] == 6 == len(found) - 2
    changes = {(each["what"]["task"], each["what"]["host"], each.get("item")): each for each in found[1:-1]}
    assert set(changes) == {
        ("Write a file", "one", None),
        ("Write a file", "two", None),
        ("Write a secret", "one", None),
        ("Make folders", "one", "first"),
        ("Make folders", "one", "second"),
        ("Fail", "two", None),
    }
    written = changes["Write a file", "one", None]
    assert (written["before"], written["after"], written["result"]) == ("old\n", "new\n", "changed")
    assert written["what"]["module"] == "ansible.builtin.copy" and written["what"]["play"] == "Change files"
    assert written["what"]["playbook"] == str(tmp_path / "site.yml")
    assert written["who"]["sudo_user"] == "ann" and written["who"]["uid"] == os.geteuid()
    assert changes["Write a secret", "one", None]["hidden"] == "hidden (no_log)"
    assert changes["Fail", "two", None]["result"] == "failed"
    assert "s3cret" not in json.dumps(found)


def test_check_mode_changes_and_records_nothing(tmp_path: Path) -> None:
    _done, found = play(tmp_path, "--check")
    assert found == []


def test_a_run_whose_record_cannot_be_written_does_not_begin(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    done, _found = play(tmp_path)
    assert done.returncode == 1 and not (tmp_path / "one").exists()
    assert "Nothing was done: the audit record" in " ".join((done.stdout + done.stderr).split())


def test_whom_a_task_became_by_a_variable_is_seen(tmp_path: Path) -> None:
    """A stand-in for sudo runs the command; the variable is of one host, and beats the keyword."""
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin/sudo"
    sudo.write_text('#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n')
    sudo.chmod(0o755)
    for name, user in (("one", "{{ whom }}"), ("two", "")):
        (tmp_path / "host_vars").mkdir(exist_ok=True)
        variables = {"ansible_become": "yes", "ansible_become_user": user, "whom": "root"} if user else {}
        (tmp_path / "host_vars" / f"{name}.json").write_text(json.dumps(variables))
    _done, found = play(tmp_path, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    became = {(each["what"]["host"], each["who"].get("become_user")) for each in found if "host" in each["what"]}
    assert became == {("one", "root"), ("two", None)}
    _done, found = play(tmp_path, "-e", "ansible_become=false", "-b")
    assert {each["who"].get("become_user") for each in found[-3:]} == {None}
