"""The examination of a node as a module: what it returns, and what it says without its controller's half."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.doctor import SOURCES as FOLDER
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.doctor import pack
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_doctor_info

SOURCES = Path(__file__).resolve().parents[4] / FOLDER


def test_the_module_returns_the_report(run_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    options = {"quick": True, "pythons": ["/nowhere/python"], "exporter_ports": [1]}
    result = run_module(gaudi_doctor_info, package=pack(str(SOURCES)), **options)
    assert result["changed"] is False
    assert result["summary"].startswith("0 Gaudi cards, driver not loaded")
    assert result["report"]["sections"]["python"]["why"] == "there is no Python at /nowhere/python"
    assert result["text"][0].startswith("Report of ")


def test_the_module_alone_says_what_is_missing(run_module: Any) -> None:
    result = run_module(gaudi_doctor_info)
    assert result["msg"] == "The examination was not sent along: call this as gaudi3.scale.gaudi_doctor_info."
