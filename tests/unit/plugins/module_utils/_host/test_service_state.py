"""When what a module found in check mode is as it is to be."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.service_state import is_unchanged

SAME = {"before": "text", "after": "text"}


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ({"changed": False, "done": [], "diff": []}, True),
        ({"changed": False, "done": [], "diff": {}}, True),
        ({"changed": False, "done": []}, True),
        ({"changed": False, "done": [], "diff": [SAME, SAME]}, True),
        ({"changed": False, "done": [], "diff": {"before": "", "after": ""}}, True),
        ({"changed": False, "done": [], "diff": [SAME, {"before": "", "after": "text"}]}, False),
        ({"changed": False, "done": [], "diff": {"after": "text"}}, False),
        ({"changed": False, "done": ["restart"], "diff": []}, False),
        ({"changed": True, "done": [], "diff": [SAME]}, False),
        ({"done": [], "diff": []}, False),
        ({}, False),
        ({"skipped": True, "changed": False}, False),
        ({"failed": True, "msg": "systemctl is missing"}, False),
    ],
)
def test_only_what_was_asked_is_known(answer: dict[str, Any], holds: bool) -> None:
    assert is_unchanged(answer) is holds
