"""What a node has to know of a wheel: read from the wheel, unless the run has read it already."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.wheel_options import with_wheel

KNOWN = {"sha256": "a" * 64, "requirements": ["numpy>=1.26"], "requires_python": ">=3.10"}


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    given = {"wheel": str(tmp_path / "nowhere.whl"), **KNOWN}
    assert with_wheel(given) == given


@pytest.mark.parametrize("name", KNOWN)
def test_what_lacks_is_read(tmp_path: Path, name: str) -> None:
    given = {"wheel": str(tmp_path / "nowhere.whl"), **{key: value for key, value in KNOWN.items() if key != name}}
    with pytest.raises(Refusal, match="nowhere"):
        with_wheel(given)
