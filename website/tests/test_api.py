"""The trainer's public names are found and documented without importing it."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from website import api, repository


def test_each_public_name_is_on_a_page_with_its_docstring() -> None:
    pages = api.pages()
    assert len(pages) > 15
    text = pages["reference/api/gaudi3_scale.md"]
    assert "## GaudiTrainer" in text and 'accelerator: str | GaudiAccelerator = "auto"' in text.replace("'", '"')
    assert "- `num_nodes`: nodes." in text
    for module, names in api.public().items():
        page = pages[f"reference/api/{module}.md"]
        assert all(f"\n## {name}\n" in page for name in names)
        assert f"]({module}.md)" in pages["reference/api/index.md"]


def test_what_documents_import_is_public() -> None:
    pattern = r"from (gaudi3_scale[.\w]*) import ([\w, ]+)"
    files = [name for name in repository.tracked() if name.endswith(".md") or name.startswith("examples/")]
    given = {
        (module, name.strip())
        for file in files
        if not file.startswith(("proofs/", "findings/"))
        for module, names in re.findall(pattern, (repository.ROOT / file).read_text(errors="replace"))
        for name in names.split(",")
    }
    assert len(given) > 10
    public = api.public()
    assert sorted((module, name) for module, name in given if name not in public.get(module, ())) == []


def test_a_name_without_a_definition_is_refused() -> None:
    with pytest.raises(LookupError, match=r"gaudi3_scale\.cost\.Nothing is not found"):
        api.find("gaudi3_scale.cost", "Nothing")
    with pytest.raises(FileNotFoundError):
        api.path_of("gaudi3_scale.nothing")


def test_no_torch_is_needed() -> None:
    code = "import sys; from website import api; api.pages(); print(sorted({'torch', 'lightning'} & set(sys.modules)))"
    command: list[str | Path] = [repository.ROOT / ".venv/bin/python", "-c", code]
    assert subprocess.run(command, cwd=repository.ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a: int, /, *, b: str = 'x') -> bool: ...", "f(a: int, /, *, b: str = 'x') -> bool"),
        ("def f(*rest: int, **named: str): ...", "f(*rest: int, **named: str)"),
        ("class f(Base):\n    def __init__(self, a=1) -> None: ...", "class f(a=1)"),
        ("class f(Base): ...", "class f(Base)"),
        ("def f(" + ", ".join(f"argument_{n}: int" for n in range(8)) + "): ...", "f(\n    argument_0: int,\n"),
    ],
)
def test_a_signature(source: str, expected: str) -> None:
    node = ast.parse(source).body[0]
    assert isinstance(node, api.Definition)
    assert api.signature("f", node).startswith(expected)


def test_a_docstrings_sections_become_lists() -> None:
    text = "Does it.\n\nArgs:\n    one: the first,\n        in two lines.\n    two: it.\n\nThe rest.\n\n    code"
    assert api.prose(text) == (
        "Does it.\n\n\n**Args**\n\n- `one`: the first,\n  in two lines.\n- `two`: it.\n\n\nThe rest.\n\n    code"
    )
