"""How a test hands a program over: as text, in a folder of its own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from gaudi3_migration import Migrated, migrate

Migrate = Callable[..., Migrated]


@pytest.fixture
def rewrite(tmp_path: Path) -> Migrate:
    """Migrate a program given as text, with helpers beside it by their names; the program alone is given back."""

    def one(text: str, gaudi_config: str = "", **helpers: str) -> Migrated:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        for name, source in helpers.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(source).lstrip("\n"))
        if gaudi_config:
            (tmp_path / "gaudi_config.json").write_text(gaudi_config)
        [program, *_rest] = migrate(path, tmp_path if gaudi_config else None)
        compile(program.after, "program.py", "exec")
        return program

    return one
