"""Running a module as Ansible does: arguments in, one JSON object out."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def run_module(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunModule:
    """Call ``main()`` of a module and return what it printed; ``check`` and ``diff`` are the play's."""

    # As on a node: where a test of a controller's plugin ran before, warnings would go to the controller's display.
    monkeypatch.setattr("ansible.module_utils._internal.is_controller", False)
    monkeypatch.setattr("ansible.module_utils.common.warnings._global_warnings", {})

    def run(module: ModuleType, *, check: bool = False, diff: bool = False, **options: Any) -> dict[str, Any]:
        arguments = {**options, "_ansible_check_mode": check, "_ansible_diff": diff}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capfd.readouterr().out)
        return result

    return run
