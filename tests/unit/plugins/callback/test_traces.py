"""The spans of a run of a playbook: one for each phase, without anything that a user wrote into a task."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ansible_run import ANSIBLE_PLAYBOOK
from tests.suite.otlp_receiver import Receiver, receiver, tree

ROOT = Path(__file__).resolve().parents[4]
GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SITE = """
- ansible.builtin.import_playbook: check_settings.yml
- ansible.builtin.import_playbook: drivers.yml
- ansible.builtin.import_playbook: hooks.yml
- ansible.builtin.import_playbook: train.yml
"""
HOOKS = """
- name: Do what the site wants
  hosts: all
  gather_facts: false
  tasks: []
"""
CHECK = """
- name: Look at the settings
  hosts: all
  gather_facts: false
  tasks: []
"""
DRIVERS = """
- name: Bring drivers
  hosts: all
  gather_facts: false
  tasks:
    - name: Say s3cret-name
      ansible.builtin.debug:
        msg: s3cret-argument
      changed_when: inventory_hostname == 's3cret-host'
    - name: Fail where it does not matter
      ansible.builtin.assert: {that: false}
      ignore_errors: true
- name: Bring more of them
  hosts: all
  gather_facts: false
  tasks: []
"""
TRAIN = """
- name: Train
  hosts: all
  gather_facts: false
  tasks:
    - name: Show what a job would get
      ansible.builtin.copy:
        content: "{{ lookup('ansible.builtin.env', 'TRACEPARENT') }}"
        dest: "{{ playbook_dir }}/job"
        mode: "0600"
      delegate_to: localhost
      run_once: true
    - name: Fail
      ansible.builtin.fail: {msg: s3cret-message}
      when: inventory_hostname == 's3cret-host'
"""


@pytest.fixture(name="there")
def a_receiver() -> Iterator[Receiver]:
    with receiver(token="Bearer s3cret") as made:
        yield made


def play(folder: Path, there: Receiver, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the site with the plugin."""
    for name, text in {
        "site": SITE,
        "check_settings": CHECK,
        "hooks": HOOKS,
        "drivers": DRIVERS,
        "train": TRAIN,
    }.items():
        (folder / f"{name}.yml").write_text("---" + text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "ANSIBLE_", "TRACE"))}
    given = {
        **there.environment,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret",
        "ANSIBLE_CALLBACKS_ENABLED": "gaudi3.scale.traces",
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "ANSIBLE_INJECT_FACT_VARS": "False",
        "ANSIBLE_HOME": str(folder / "home"),
        **more,
    }
    return subprocess.run(
        [*ANSIBLE_PLAYBOOK, "-i", "s3cret-host,other,", "-c", "local", str(folder / "site.yml")],
        env={**kept, **given},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_phase_of_a_run_is_a_span(tmp_path: Path, there: Receiver) -> None:
    done = play(tmp_path, there, TRACEPARENT=GIVEN)
    assert done.returncode == 2, done.stdout + done.stderr
    assert tree(there.spans) == ["site.yml", "  drivers", "  train"], done.stderr
    assert {each.trace for each in there.spans} == {GIVEN.split("-")[1]}
    assert there.one("site.yml").parent == "00f067aa0ba902b7"
    assert there.one("drivers").attributes == {"gaudi.hosts": 2, "gaudi.changed": 1, "gaudi.failed": 0}
    train = there.one("train")
    assert train.attributes["gaudi.failed"] == 1 and train.error == "failed on 1 host(s)"
    assert there.one("site.yml").error == "failed on 1 host(s)" and there.one("drivers").error is None
    # A job that is started in a phase belongs to it.
    assert (tmp_path / "job").read_text() == f"00-{train.trace}-{train.id}-01"
    assert "s3cret" not in json.dumps([(each.name, each.attributes, each.error) for each in there.spans])
    assert "Bearer" not in done.stdout + done.stderr


def test_a_run_with_opentelemetry_switched_off_sends_nothing(tmp_path: Path, there: Receiver) -> None:
    play(tmp_path, there, OTEL_SDK_DISABLED="true")
    assert not there.headers and (tmp_path / "job").read_text() == ""


def test_a_receiver_that_is_away_costs_a_warning(tmp_path: Path) -> None:
    gone = Receiver()
    gone.close()
    done = play(tmp_path, gone)
    assert done.returncode == 2
    said = " ".join((done.stdout + done.stderr).split())
    assert "[WARNING]: 3 span(s) of the trace did not reach their receiver (ConnectionError)." in said
    assert "s3cret-of" not in said and "Traceback" not in said
