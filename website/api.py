"""The trainer's Python API from its docstrings, read and never imported: no torch is needed.

What is documented are the names that a package exports by `__all__`, and those of `MODULES`. Docstrings are Markdown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from website.repository import ROOT

SOURCE = ROOT / "trainer/src"
FOLDER = "reference/api"
#: Modules of public names without `__all__`, with what of them is public.
MODULES: dict[str, tuple[str, ...]] = {
    "gaudi3_scale.distributed": ("OptimizedDDP",),
    "gaudi3_scale.throughput.callback": ("ThroughputCallback",),
    "gaudi3_scale.callbacks.cost_callback": ("CostCallback",),
    "gaudi3_scale.callbacks.throughput_callback": ("ThroughputCallback",),
    "gaudi3_scale.precision": ("GaudiMixedPrecision",),
    "gaudi3_scale.profiler": ("GaudiProfiler",),
}
#: What exports names for the package's own files alone.
INTERNAL = {"gaudi3_scale.internals"}
#: Sections of a docstring: what follows is a list.
SECTIONS = re.compile(r"^(Args|Attributes|Raises|Returns|Yields|Example|Examples):$")
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Found:
    """Where a name is defined: a class, a function, or a value with the string below it."""

    module: str
    node: ast.stmt
    text: str


def path_of(module: str) -> Path:
    """The file of a module; FileNotFoundError where there is none."""
    stem = SOURCE / module.replace(".", "/")
    found = next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.exists()), None)
    if found is None:
        raise FileNotFoundError(f"There is no module {module}.")
    return found


@cache
def parsed(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path_of(module).read_text(encoding="utf-8"))


def public() -> dict[str, tuple[str, ...]]:
    """The public names by the module that a user imports them from."""
    found = dict(MODULES)
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if module in INTERNAL or "__all__" not in path.read_text(encoding="utf-8"):
            continue
        for node in parsed(module).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[module] = tuple(name for name in ast.literal_eval(node.value) if not name.startswith("_"))
    return found


@cache
def lazy() -> dict[str, dict[str, str]]:
    """`PUBLIC` of gaudi3_scale.lazy: names that a package hands on from a higher floor."""
    for node in parsed("gaudi3_scale.lazy").body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PUBLIC" and node.value is not None:
            found: dict[str, dict[str, str]] = ast.literal_eval(node.value)
            return found
    raise LookupError("gaudi3_scale.lazy has no PUBLIC.")


def find(module: str, name: str) -> Found:
    """The definition of a name; LookupError where it cannot be followed."""
    body = parsed(module).body
    for number, node in enumerate(body):
        if isinstance(node, Definition) and node.name == name:
            return Found(module, node, ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == name:
                return Found(module, node, string(body[number + 1]) if number + 1 < len(body) else "")
    for home in homes(module, name):
        return find(home, name)
    raise LookupError(f"{module}.{name} is not found: put its module into website/api.py.")


def homes(module: str, name: str) -> Iterator[str]:
    """The modules that a module imports a name from, or loads it from when it is first asked for."""
    if name in lazy().get(module, {}):
        yield f"gaudi3_scale.{lazy()[module][name]}"
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            yield node.module
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Constant):
                    yield f"gaudi3_scale.{value.value!s}"


def string(node: ast.stmt) -> str:
    """The text of a statement that is a string."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return ""


def prose(text: str) -> str:
    """A docstring as Markdown: sections become lists, headings and lone lines stay what they are."""
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        if found := SECTIONS.match(line):
            section = found[1]
            lines += ["", f"**{section}**", ""]
        elif section and line.strip() and not line.startswith(" "):
            section = ""
            lines += ["", line]
        elif section in ("Args", "Attributes", "Raises") and re.match(r" {4}\S", line):
            name, colon, rest = line.strip().partition(": ")
            lines.append(f"- `{name}`: {rest}" if colon else f"- {line.strip()}")
        elif section in ("Args", "Attributes", "Raises"):
            lines.append(f"  {line.strip()}" if line.strip() else "")
        elif section in ("Returns", "Yields"):
            lines.append(line.strip())
        else:
            lines.append(line)
    return "\n".join(lines).strip()


def signature(name: str, node: Definition) -> str:
    """How a class or a function is called, cut into lines where it is long."""
    function = node
    if isinstance(node, ast.ClassDef):
        own = (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
        init = next(own, None)
        if init is None:
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            return f"class {name}({bases})" if bases else f"class {name}"
        function = init
    assert not isinstance(function, ast.ClassDef)
    given = [each for each in split_arguments(function.args) if each not in ("self", "cls")]
    answer = f" -> {ast.unparse(function.returns)}" if function.returns and function is node else ""
    start = ("class " if isinstance(node, ast.ClassDef) else "") + name
    line = f"{start}({', '.join(given)}){answer}"
    return line if len(line) <= 88 else f"{start}(\n" + "".join(f"    {each},\n" for each in given) + f"){answer}"


def split_arguments(arguments: ast.arguments) -> list[str]:
    """Each argument with its type and default."""
    found: list[str] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        found.append(one_argument(argument, default))
        if number == len(arguments.posonlyargs):
            found.append("/")
    if arguments.vararg:
        found.append("*" + ast.unparse(arguments.vararg))
    elif arguments.kwonlyargs:
        found.append("*")
    found += [one_argument(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [*found, "**" + ast.unparse(arguments.kwarg)] if arguments.kwarg else found


def one_argument(argument: ast.arg, default: ast.expr | None) -> str:
    """An argument as it is written."""
    if default is None:
        return ast.unparse(argument)
    return f"{ast.unparse(argument)}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def members(node: ast.ClassDef) -> Iterator[str]:
    """Documented attributes, fields and methods of a class."""
    for number, each in enumerate(node.body):
        if isinstance(each, ast.AnnAssign) and not ast.unparse(each.target).startswith("_"):
            after = string(node.body[number + 1]) if number + 1 < len(node.body) else ""
            about = after or described(each.value)
            if about:
                yield f"- `{ast.unparse(each.target)}: {ast.unparse(each.annotation)}`: {' '.join(about.split())}\n"
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
            text = ast.get_docstring(each)
            if not text:
                continue
            if any(ast.unparse(mark) in ("property", "cached_property") for mark in each.decorator_list):
                kind = f": {ast.unparse(each.returns)}" if each.returns else ""
                yield f"\n### {each.name}\n\n```python\n{each.name}{kind}\n```\n\n{prose(text)}\n"
            else:
                yield f"\n### {each.name}\n\n```python\n{signature(each.name, each)}\n```\n\n{prose(text)}\n"


def described(value: ast.expr | None) -> str:
    """The description of a pydantic field."""
    if isinstance(value, ast.Call):
        for keyword in value.keywords:
            if keyword.arg == "description" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return ""


def page(module: str, names: tuple[str, ...]) -> str:
    """The page of a module."""
    text = ast.get_docstring(parsed(module)) or ""
    parts = [f"# {module}\n\n{prose(text)}\n"]
    for name in names:
        found = find(module, name)
        parts.append(f"\n## {name}\n\n")
        if isinstance(found.node, Definition):
            parts.append(f"```python\nfrom {module} import {name}\n\n{signature(name, found.node)}\n```\n\n")
        else:
            parts.append(f"```python\n{ast.unparse(found.node)}\n```\n\n")
        parts.append(prose(found.text) + "\n")
        if isinstance(found.node, ast.ClassDef):
            rows = list(members(found.node))
            parts += ["\n", *rows] if rows else []
    return "".join(parts)


def pages() -> dict[str, str]:
    """The pages by their paths below the site's source; the first lists the others."""
    found = {}
    rows = []
    for module, names in sorted(public().items()):
        found[f"{FOLDER}/{module}.md"] = page(module, names)
        rows.append(f"- [{module}]({module}.md): {', '.join(f'`{name}`' for name in names)}\n")
    tree = "".join(f"{module} <{module}>\n" for module in sorted(public()))
    found[f"{FOLDER}/index.md"] = (
        "# Python API of the trainer\n\n"
        "The classes and functions of the package `gaudi3_scale` that scripts of your own may import. What is not "
        "listed here may change without notice.\n\n" + "".join(rows) + f"\n```{{toctree}}\n:hidden:\n\n{tree}```\n"
    )
    return found
