"""gaudi_certificate: a host without cards, what is refused, and which results of long parts count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.evidence import Result, read
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.judge import assess
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies.certificate import DAY_S, Progress
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_certificate

NOW = 1_790_000_000.0
IDENTITY = {"driver": "1.23.0-2eae87a", "serials": ["AO1"]}
ENDED = Result("power", True, at=NOW)


def test_a_host_without_cards_has_evidence_and_no_grade(run_module: Any, tmp_path: Path) -> None:
    given = {"executable": "/nowhere/hl-smi", "folder": str(tmp_path / "kept"), "qualify": True, "train": True}
    result = run_module(gaudi_certificate, **given, pythons=["/nowhere/python"])
    assert (result["changed"], result["ran"], list(tmp_path.iterdir())) == (False, [], [])
    judged = assess(read(result["evidence"]))
    assert (judged.grade, judged.silent["hl-smi"]) == ("none", "it shows no card")
    assert judged.silent["replaced rows"] == "hl-smi was not found on this host"
    assert judged.silent["hl_qual"] == "hl_qual is not there"
    assert judged.silent["training step"] == "none of /nowhere/python is there"


@pytest.mark.parametrize("name", ["timeout", "hl_qual_timeout", "step_timeout", "days"])
def test_a_limit_that_is_none_is_refused(run_module: Any, name: str) -> None:
    assert run_module(gaudi_certificate, **{name: 0})["msg"] == f"{name} was 0: give 1 or more."


def kept(folder: Path) -> None:
    Progress(str(folder), IDENTITY, NOW, 7).keep("qual", [ENDED])


def test_a_result_is_kept_whole_and_counts_for_its_days(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    kept(folder)
    assert oct((folder / "progress.json").stat().st_mode & 0o777) == "0o600"
    for now, known in ((NOW, 1), (NOW + 7 * DAY_S, 1), (NOW + 7 * DAY_S + 1, 0), (NOW - 2 * DAY_S, 0)):
        assert len(Progress(str(folder), IDENTITY, now, 7).results("qual")) == known


def test_results_of_other_cards_or_another_driver_do_not_count(tmp_path: Path) -> None:
    kept(tmp_path)
    for other in ({**IDENTITY, "driver": "1.24.1"}, {**IDENTITY, "serials": ["AO2"]}):
        assert Progress(str(tmp_path), other, NOW, 7).results("qual") == []
    assert Progress(str(tmp_path), IDENTITY, NOW, 7, restart=True).results("qual") == []
    assert Progress(str(tmp_path), IDENTITY, NOW, 7).results("qual")[0]["name"] == "power"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"identity": 1}', json.dumps({"identity": IDENTITY, "qual": 4})])
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress.json").write_text(text)
    assert Progress(str(tmp_path), IDENTITY, NOW, 7).results("qual") == []
