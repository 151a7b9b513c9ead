"""Public reports of mismatched versions, judged as their threads ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._release.journey import journey
from ansible_collections.gaudi3.scale.plugins.module_utils._release.node import Node
from ansible_collections.gaudi3.scale.plugins.module_utils._release.rules import check, consistent, culprit

REPORTS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("mismatches.yml").read_text())
BAD = [each for each in REPORTS if each["culprit"]]


def test_there_are_enough_reports_each_with_its_address() -> None:
    assert len(BAD) >= 12
    threads = [each["thread"].split(",")[0] for each in REPORTS]
    assert len(set(threads)) == len(threads)
    assert all("#" in each and "/" in each for each in threads)


@pytest.mark.parametrize("report", REPORTS, ids=[each["thread"].split(",")[0] for each in REPORTS])
def test_a_report_is_judged_as_its_thread_ended(report: dict[str, Any]) -> None:
    node, keep = Node.of(report["node"]), tuple(report.get("keep", ()))
    findings = check(node, keep=keep)
    assert culprit(findings) == report["culprit"]
    assert consistent(findings) is (report["culprit"] == "")
    assert all(each.source for each in findings)
    if report.get("steps") is None:
        assert journey(node, report.get("to", {}), keep=keep).no_way.endswith("not with gaudi.")
        return
    found = journey(node, report.get("to", {}), keep=keep)
    assert [each.kind for each in found.steps] == report["steps"]
    assert found.release == report["release"]
    assert all(report["release"] in each.what for each in found.steps if each.kind in ("release", "load", "torch"))
