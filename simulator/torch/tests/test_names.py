"""Every name of habana_frameworks, and of torch.hpu, that public programs for Gaudi ask for is there.

`names.json` has them by project: collected from its Python sources (imports, attributes of imported modules). What its
authors catch as missing on a Gaudi, too, is left out (`torch.hpu.hpu` of lightning-Habana).
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gaudi3_hpu_simulator.errors import NotSimulated

PROJECTS: dict[str, list[str]] = json.loads((Path(__file__).parent / "names.json").read_text())


def resolved(name: str) -> Any:
    """The module or the attribute of that name; AttributeError or ImportError where there is none."""
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], 1):
        module = sys.modules.get(".".join(parts[:index]))  # a class of the same name may hide it: kernels.FusedSDPA
        if not hasattr(found, part) and not hasattr(module, part):
            importlib.import_module(".".join(parts[: index + 1]))
        found = getattr(found if hasattr(found, part) else module, part)
    return found


@pytest.mark.parametrize("project", PROJECTS)
def test_each_name_that_a_project_asks_for_is_there(project: str) -> None:
    missing = []
    for name in PROJECTS[project]:
        try:
            resolved(name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert missing == []


def test_a_name_that_nobody_has_is_not_there() -> None:
    with pytest.raises(ImportError):
        resolved("habana_frameworks.torch.core.mark_steps")


def test_gpu_migration_says_at_its_import_what_to_do() -> None:
    with pytest.raises(NotSimulated, match=r"GPU migration .*write 'hpu' for 'cuda'"):
        importlib.import_module("habana_frameworks.torch.gpu_migration")


@pytest.mark.parametrize(
    "name",
    [
        "HabanaDataLoader",
        "habana_dataset.ImageFolderWithManifest",
        "aeon_config.get_aeon_config",
        "aeon_transformers.HabanaAeonTransforms",
        "aeon_manifest.generate_aeon_manifest",
        "habana_dl_app.HabanaAcceleratedPytorchDL",
    ],
)
def test_the_loader_of_images_is_there_and_refuses(name: str) -> None:
    with pytest.raises(NotSimulated, match="or run on hardware"):
        resolved(f"habana_dataloader.{name}")()
