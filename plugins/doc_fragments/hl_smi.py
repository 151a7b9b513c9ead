# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations


class ModuleDocFragment:
    """Options of every module which calls hl-smi; the argument spec is in module_utils/_hl_smi/command.py."""

    DOCUMENTATION = r"""
options:
  executable:
    description:
      - The C(hl-smi) to call, a name found in C(PATH) or a full path.
    type: path
    default: hl-smi
  timeout:
    description:
      - Seconds to wait for one call of C(hl-smi). A card in reset can hold the tool for long; after this time
        it is
        killed and the task fails.
    type: int
    default: 30
"""
