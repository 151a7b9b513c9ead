"""A phase's own playbook knows the tag that the phase has in a site: with it, it does the phase, and not nothing."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.hooks import PHASES

from .jinja import ROOT

#: Their tasks are done in every run.
ALWAYS = ("check_settings.yml", "check_variables.yml", "check_monitoring_hosts.yml")


@pytest.mark.parametrize("phase", PHASES)
def test_every_play_of_a_phase_has_its_tag(phase: str) -> None:
    plays = yaml.safe_load((ROOT / "playbooks" / f"{phase}.yml").read_text())
    own = [play for play in plays if play.get("ansible.builtin.import_playbook") not in ALWAYS]
    assert [play["name"] for play in own if play.get("tags") != [phase]] == []
    hooks = [play["vars"]["phase_hook"] for play in own if "ansible.builtin.import_playbook" in play]
    assert hooks == [f"before_{phase}", f"after_{phase}"]
