"""A program, with the helper modules in its folder: read, rewritten, compared, written."""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gaudi3_migration.command import migrated_json
from gaudi3_migration.findings import Finding, Migrated
from gaudi3_migration.names import MOVED

if TYPE_CHECKING:
    import libcst as cst

    from gaudi3_migration.facts import Facts, Kind


MARK = "\ufeff"
"""What some editors begin a UTF-8 file with; Python takes it."""
DEEPEST = 120
"""Nodes of the tree in one another; ordinary programs have about thirty."""


class MigrationError(Exception):
    """What a user can act on, in one sentence."""


@dataclass
class _Read:
    """One file that was read."""

    path: Path
    source: str
    module: cst.Module
    facts: Facts


def source_of(path: Path) -> str:
    """The text of a program; MigrationError where it is none."""
    if path.suffix == ".ipynb":
        raise MigrationError(f"{path} is a notebook: give the program that jupyter nbconvert --to script makes of it.")
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise MigrationError(f"{path} does not exist: give the program's file.") from None
    except IsADirectoryError:
        raise MigrationError(f"{path} is a folder: give the program's file.") from None
    except OSError as error:
        raise MigrationError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise MigrationError(f"{path} is not UTF-8 at byte {error.start}: save the program as UTF-8.") from error


def parsed(path: Path, source: str) -> cst.Module:
    """The syntax tree of a program."""
    import libcst as cst

    try:
        depth = _depth(
            ast.parse(source.removeprefix(MARK))
        )  # first, as libcst's parser ends the process where nesting is too deep for it
        if depth > DEEPEST:
            raise MigrationError(f"{path} is nested too deep to be read.")
        return cst.parse_module(source)
    except SyntaxError as error:
        raise MigrationError(f"{path}, line {error.lineno}: this is no Python: {error.msg}.") from error
    except (RecursionError, MemoryError):
        raise MigrationError(f"{path} is nested too deep to be read.") from None
    except (cst.ParserSyntaxError, ValueError) as error:
        raise MigrationError(f"{path} cannot be read as Python: {str(error).splitlines()[0]}") from error


def _depth(tree: ast.AST) -> int:
    """How deep the nodes of a tree are in one another."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [below for each in level for below in ast.iter_child_nodes(each)]
    return deepest


def settings_of(path: Path) -> dict[str, bool]:
    """The keys of a gaudi_config.json, given itself or by its folder."""
    file = path / "gaudi_config.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise MigrationError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise MigrationError(f"{file} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise MigrationError(f"{file} has no keys: give the gaudi_config.json that gaudi_config_name named.")
    return {key: value for key, value in content.items() if isinstance(value, bool)}


def migrate(script: Path, gaudi_config: Path | None = None) -> list[Migrated]:
    """A program rewritten, and the helpers in its folder that need it; nothing is written, and nothing run."""
    known = None if gaudi_config is None else settings_of(gaudi_config)
    files = list(_read_all(script, known).values())
    fused = _merged(files, known)
    return [_migrated(each, fused) for each in files]


def migrate_json_file(path: Path) -> Migrated:
    """A JSON file of arguments rewritten."""
    before = source_of(path)
    try:
        after, findings = migrated_json(before, ())
    except (ValueError, RecursionError) as error:
        raise MigrationError(f"{path} is no JSON object of arguments: {error}.") from error
    return Migrated(path, before, after if findings else before, findings)


def _read_all(script: Path, known: dict[str, bool] | None) -> dict[Path, _Read]:
    """The program and the helpers that it imports from its own folder, each after those that it imports itself."""
    from gaudi3_migration import reading

    done: dict[Path, _Read] = {}
    under_way: set[Path] = set()

    def one(path: Path) -> None:
        if path in done or path in under_way:
            return
        under_way.add(path)
        source = source_of(path)
        module = parsed(path, source)
        kinds: dict[str, Kind] = {}
        fields: dict[str, set[str]] = {}
        for local, module_name, name in _local_imports(module):
            helper = path.parent / f"{module_name}.py"
            if not helper.is_file() or helper == path:
                continue
            one(helper)
            if helper in done:
                facts = done[helper].facts
                if name in facts.kinds:
                    kinds[local] = facts.kinds[name]
                if name in facts.fields:
                    fields[local] = facts.fields[name]

        def read_config(name: str) -> dict[str, bool] | None:
            if known is not None:
                return known
            folder = path.parent / name
            return settings_of(folder) if name and (folder / "gaudi_config.json").is_file() else None

        done[path] = _Read(path, source, module, reading.read(module, read_config, kinds, fields))

    one(script)
    rest = {path: each for path, each in done.items() if path != script and uses(each)}
    return {script: done[script], **rest}


def _local_imports(module: cst.Module) -> list[tuple[str, str, str]]:
    """Local name, module and name of what a program imports from modules without a package."""
    import libcst as cst

    from gaudi3_migration.facts import aliases, dotted

    found: list[tuple[str, str, str]] = []

    class Walk(cst.CSTVisitor):
        def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
            name = dotted(node.module)
            if name and "." not in name and len(node.relative) <= 1:
                found.extend((local, name, qualified.rpartition(".")[2]) for local, qualified, _alias in aliases(node))
                if isinstance(node.names, cst.ImportStar):
                    found.append(("*", name, "*"))

        def visit_Import(self, node: cst.Import) -> None:
            found.extend((local, qualified, "") for local, qualified, _alias in aliases(node) if "." not in qualified)

    module.visit(Walk())
    return found


def uses(read: _Read) -> bool:
    """Whether a file has to do with optimum-habana at all, or imports from optimum what has moved."""
    facts = read.facts
    names = {*facts.imports.values(), *facts.modules, *facts.strings}
    habana = any(each == "optimum.habana" or each.startswith("optimum.habana.") for each in names)
    lazy = bool(facts.lazy) and any(each.startswith("habana_frameworks") for each in facts.imports.values())
    stars = "from optimum.habana" in read.source and "import *" in read.source
    spawned = any("gaudi_spawn" in each for each in facts.strings)
    moved = any(f"{each}.".startswith(f"{old}.") for each in names for old in MOVED if old.startswith("optimum."))
    return habana or moved or bool(facts.kinds) or lazy or stars or spawned


def _merged(files: Sequence[_Read], known: dict[str, bool] | None) -> bool:
    """Whether the settings of gaudi_config.json are known; helpers get those of the program."""
    settings = dict(known or {})
    for each in files:
        settings.update(each.facts.settings)
    for each in files:
        each.facts.settings.update(settings)
    return not any(each.facts.unread for each in files) or bool(known)


def _migrated(read: _Read, config_known: bool) -> Migrated:
    from gaudi3_migration import imports, statements

    if not uses(read):
        return Migrated(read.path, read.source, read.source)
    after, findings = statements.rewrite(read.module, imports.plan(read.facts, config_known))
    if read.source.startswith(MARK):  # which libcst leaves out
        after = f"{MARK}{after}"
    result = Migrated(read.path, read.source, after, findings)
    from gaudi3_migration import arguments

    facts = read.facts
    result.own = facts.own | {each for each in facts.reads if not arguments.BY_ARGUMENT[each].read}
    if facts.parsers and facts.arguments:
        gone = "drop --use_habana, --use_lazy_mode, --gaudi_config_name and what else the table has: give it behind --"
        result.findings.insert(0, Finding(0, "its command line", gone))
    return result


def difference(files: Sequence[Migrated]) -> str:
    """A unified diff of all that changed."""
    parts = []
    for each in files:
        name = each.path.name
        lines = difflib.unified_diff(
            each.before.splitlines(keepends=True), each.after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(parts)
