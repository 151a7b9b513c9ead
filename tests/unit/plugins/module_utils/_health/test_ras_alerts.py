"""The dictionary of a management controller's alerts: complete, and an advice for each."""

from __future__ import annotations

from collections import Counter

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.actions import (
    ACTIONS,
    CRITICAL,
    ERROR,
    INFO,
    SEVERITIES,
    WARNING,
)  # fmt: skip
from ansible_collections.gaudi3.scale.plugins.module_utils._health.ras_alerts import (
    ALERT_FIELDS,
    RAS_ALERTS,
    SCALE,
    describe,
)  # fmt: skip


def test_all_names_are_there_with_their_published_severities() -> None:
    assert len(RAS_ALERTS) == 80
    assert Counter(each.published for each in RAS_ALERTS.values()) == {
        "Error": 32, "Notice": 27, "Critical": 14, "Fatal": 7,
    }  # fmt: skip
    assert {each.published for each in RAS_ALERTS.values()} == set(SCALE)


@pytest.mark.parametrize("alert", RAS_ALERTS.values(), ids=list(RAS_ALERTS))
def test_each_has_an_advice_for_people(alert) -> None:  # type: ignore[no-untyped-def]
    assert alert.action in ACTIONS and alert.severity in SEVERITIES
    assert alert.wording and not alert.wording.endswith(".")


def test_a_name_is_found_whatever_its_case_and_others_are_not() -> None:
    found = describe("wd_heartbeat_err")
    assert found is not None and (found.severity, found.action) == (ERROR, "reload")
    # The names of driver events are another dictionary's.
    assert describe("MME0_DIE0_HD0_DERR") is None


def test_fields_of_gaudi_3_are_told_apart_by_their_paths() -> None:
    assert len(ALERT_FIELDS) == 29 == len({each.path for each in ALERT_FIELDS})
    assert [each.ras for each in ALERT_FIELDS if each.ras and each.ras not in RAS_ALERTS] == []


def test_a_severity_is_the_field_s_own_else_that_of_the_name_that_says_the_same() -> None:
    by_path = {each.path: each for each in ALERT_FIELDS}
    own = by_path["PLL.FirstPLLLockIndex"]
    assert (own.published, own.severity, own.action) == ("Critical", CRITICAL, "reboot")
    lent = by_path["SecuritySPI.Signature"]
    assert (lent.published, lent.severity, lent.action) == ("", INFO, "isolate")
    none = by_path["RMA.D2DFatalTraining"]
    assert (none.severity, none.action, none.wording) == (WARNING, "replace", "the field RMA.D2DFatalTraining is set")
    assert by_path["SPIGW.SPIGWErrorCount"].action == "watch"
