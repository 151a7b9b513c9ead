# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which settings of Ansible this collection does not run with."""

from __future__ import annotations

from collections.abc import Callable

PROBLEM = (
    "inject_facts_as_vars is true in Ansible's settings, with which a node's answer sets variables of this run: put "
    "'inject_facts_as_vars = False' below [defaults] into your ansible.cfg, or set ANSIBLE_INJECT_FACT_VARS=False."
)


def settings_problem(value_of: Callable[[str], object]) -> str:
    """Why nothing is asked of a node with these settings, in one sentence; empty where there is no reason.

    ``value_of`` returns the value of a setting by its name in ``ansible-config``.
    """
    return PROBLEM if value_of("INJECT_FACTS_AS_VARS") else ""
