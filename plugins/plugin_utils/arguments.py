# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Compares the variables of a role with its argument specification, as Ansible does when the role begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .roles import DEFAULTS, SPECIFICATIONS, trusted

_NOTHING = object()


def shared(default: Any, given: Container[str]) -> bool:
    """Whether a default has a variable in it that several roles share, and that is ``given``."""
    return any(name in given for name in re.findall(r"\bgaudi_\w+", str(default)))


def faults(roles: Iterable[str], variables: Mapping[str, Any], template: Callable[[Any], Any]) -> list[str]:
    """What is wrong with the variables of these roles, as far as they have a value yet."""
    return [fault for role in roles for fault in _faults(SPECIFICATIONS[role], variables, template)]


def _faults(options: Mapping[str, Any], variables: Mapping[str, Any], template: Callable[[Any], Any]) -> list[str]:
    values = {}
    for name in options:
        default = DEFAULTS.get(name, _NOTHING)
        value = variables.get(name, default)
        # What nobody has set is right, and its template would cost the most.
        if value is _NOTHING or (value == default and not shared(default, variables)):
            continue
        try:
            values[name] = template(trusted(value) if name not in variables else value)
        except AnsibleError:
            # It needs what a later task finds out; the role itself looks again.
            continue
    known = {name: option for name, option in options.items() if name in values}
    return list(ArgumentSpecValidator(known).validate(values, validate_role_argument_spec=True).error_messages)
