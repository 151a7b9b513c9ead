"""Passports: issued to sound nodes alone, and void by time, version, node, depth and signature."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.passport import DAY_S, issue, problem, read_key, sign
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

KEY = bytes(range(32))
NOW = 1_790_000_000
VERSIONS = {
    "board": "HL-325L",
    "driver": "1.23.0-2eae87a",
    "spi": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
    "serials": "AO1, AO2",
}
ENTRY = {"component": "accel3", "kind": "node fault", "action": "watch", "severity": "error"}
HEALTH: dict[str, Any] = {"verdicts": [], "errors": [], "suspects": [], "versions": VERSIONS, "figures": {}}
DEPTH = "standard"


def passport(**more: Any) -> str:
    return sign(issue("gaudi-1", {**HEALTH, **more}, ("card-status",), DEPTH, NOW, 7 * DAY_S), KEY)


def test_a_sound_node_has_a_valid_passport_for_its_life() -> None:
    text = passport()
    for now in (NOW - 60, NOW, NOW + 7 * DAY_S - 1):
        assert problem(text, KEY, "gaudi-1", now, VERSIONS, DEPTH) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"now": NOW + 7 * DAY_S + 7300}, "it expired 2 hours ago"),
        ({"now": NOW - 1000}, "it was issued in the future"),
        ({"node": "gaudi-2"}, "it is gaudi-1's"),
        ({"key": bytes(32)}, "its signature is not of this key"),
        ({"depth": "deep"}, "its depth is standard where deep is asked for"),
        ({"versions": {**VERSIONS, "driver": "1.24.1"}}, "driver was 1.23.0-2eae87a and is 1.24.1"),
        ({"versions": {**VERSIONS, "serials": "AO1, AO3"}}, "serials was AO1, AO2 and is AO1, AO3"),
        ({"versions": {**VERSIONS, "fit": "new"}}, "fit was none and is new"),
        ({"text": None}, "there is none"),
        ({"text": ""}, "its file is not a passport"),
        ({"text": "[]"}, "its file is not a passport"),
        ({"text": '{"passport": [], "signature": ""}'}, "its signature is not of this key"),
    ],
)
def test_a_passport_is_void(change: dict[str, Any], reason: str) -> None:
    asked: dict[str, Any] = {
        "text": passport(), "key": KEY, "node": "gaudi-1", "now": NOW, "versions": VERSIONS, "depth": DEPTH,
    }  # fmt: skip
    assert problem(**{**asked, **change}) == reason


@pytest.mark.parametrize(
    "field", ["node", "expires_at", "issued_at", "depth", "versions", "checks", "figures", "thresholds"]
)
def test_any_change_of_its_content_breaks_the_signature(field: str) -> None:
    whole = json.loads(passport())
    whole["passport"][field] = NOW + 10**6
    assert problem(json.dumps(whole), KEY, "gaudi-1", NOW, VERSIONS) == "its signature is not of this key"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"verdicts": [{**ENTRY, "severity": "critical", "message": "accel3: out"}]},
            "accel3: out; repair it and examine it again",
        ),
        ({"errors": [{**ENTRY, "message": "hl-smi could not be read"}]}, "hl-smi could not be read; examine it again"),
        ({"suspects": [{**ENTRY, "message": "accel3: maybe"}]}, "accel3: maybe; examine it again"),
        ({"versions": {}}, "no card was read; examine it again"),
    ],
)
def test_a_node_that_is_not_sound_or_not_read_whole_gets_none(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refusal, match="gaudi-1 gets no passport") as refused:
        passport(**more)
    assert reason in str(refused.value)


def test_a_note_is_no_obstacle() -> None:
    assert passport(verdicts=[{**ENTRY, "severity": "info", "message": "corrected memory errors"}])


def test_figures_come_with_the_thresholds_that_they_passed() -> None:
    content = json.loads(passport(figures={"all_reduce": 258.2}))["passport"]
    assert content["figures"] == {"all_reduce": 258.2}
    assert content["thresholds"]["all_reduce"] == 255.0


@pytest.mark.parametrize("text", ["", "abc", "00" * 31, "zz" * 32])
def test_a_key_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="64 hex digits"):
        read_key(text)
