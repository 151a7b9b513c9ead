# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of every module which changes nothing."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Changes nothing, and so does the same in check mode.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
"""
