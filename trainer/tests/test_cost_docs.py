"""The examples in the documentation of cost run, and its page names every input and every setting."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from gaudi3_scale.config import CostConfig
from gaudi3_scale.cost import analyzer, chargeback, checkpoint_interval, energy, values, workload
from gaudi3_scale.cost.inputs import Checkpoints, Energy, Inputs, Offer, Storage, Workload
from gaudi3_scale.cost.platforms import PLATFORMS
from gaudi3_scale.cost.report import WRITERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "use" / "cost.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("module", [analyzer, chargeback, checkpoint_interval, energy, values, workload])
def test_the_examples_of_a_module_run(module: object) -> None:
    ran = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL, raise_on_error=False)  # type: ignore[arg-type]
    assert ran.failed == 0
    assert ran.attempted > 0 or module is chargeback


def test_the_example_of_the_callback_runs() -> None:
    ran = doctest.testmod(importlib.import_module("gaudi3_scale.callbacks.cost_callback"))
    assert ran.failed == 0 and ran.attempted > 0


@pytest.mark.parametrize("section", [Inputs, Workload, Offer, Energy, Storage, Checkpoints, CostConfig])
def test_the_page_names_every_key(section: type[BaseModel]) -> None:
    missing = [name for name in section.model_fields if f"`{name}`" not in PAGE]
    assert missing == []


def test_the_page_names_every_platform_and_its_published_figures() -> None:
    for name, platform in PLATFORMS.items():
        assert f"`{name}`" in PAGE
        assert platform.device_watts is None or platform.device_watts.source in PAGE
    assert all(f"`{suffix}`" in PAGE for suffix in WRITERS)


def test_the_python_of_the_page_runs_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) == PAGE.count("comparison = ") + PAGE.count("trainer = ") == 3
    names: dict[str, object] = {}
    for each in BLOCKS:
        exec(compile(each, "docs/use/cost.md", "exec"), names)
    assert (tmp_path / "tco.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "cost_analysis.pdf").read_bytes().startswith(b"%PDF")
