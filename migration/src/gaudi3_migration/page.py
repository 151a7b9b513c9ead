"""The table of what followed optimum-habana, as Markdown: every class and every argument."""

from __future__ import annotations

from collections.abc import Sequence

from gaudi3_migration import arguments, names

TITLE = "optimum-habana, class by class and argument by argument"
VERSIONS = (
    "optimum-habana 1.21.2 beside transformers 4.55.4, and transformers 5.23.0, accelerate 1.15.0, diffusers 0.42.1, "
    "trl 1.16.0, sentence-transformers 6.2.0"
)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _successor(row: names.Name) -> str:
    if row.kind == "class":
        return f"`{row.successor}`"
    if row.kind == "snippet":
        return f"a definition in the program{f' (`{row.successor}`)' if row.successor else ''}"
    return "none"


def _argument(row: arguments.Argument) -> str:
    if row.successor.startswith("not:"):
        return f"`{row.successor[4:]}`, its opposite"
    return f"`{row.successor}`" if row.successor else "none"


def table() -> str:
    """The page, made of the tables that the rewriting uses."""
    classes = [(f"`{row.name}`", _successor(row), row.do, "yes" if row.changes else "no") for row in names.NAMES]
    classes.append(
        (
            ", ".join(f"`Gaudi{each}`" for each in names.PIPELINES),
            "the same name of `diffusers`, without Gaudi",
            f'{", ".join(f"`{each}`" for each in names.PIPELINE_KEYWORDS)} go; `use_habana=True` is `.to("hpu")`',
            "no",
        )
    )
    fields = [
        (f"`{row.name}`", row.where, f"`{row.default}`", _argument(row), row.do, row.changes)
        for row in arguments.ARGUMENTS
    ]
    defaults = [
        (f"`{name}`", f"`{old}`", f"`{new}`", changes) for name, (old, new, changes) in arguments.DEFAULTS.items()
    ]
    keys = [(f"`{key}`", do, changes) for key, (do, changes) in arguments.CONFIG_KEYS.items()]
    added = ", ".join(f"`{each}`" for each in arguments.ADDED)
    return "\n".join(
        (
            f"# {TITLE}\n",
            "What `gaudi3-train migrate` writes in the place of each name, for whoever rewrites a program. "
            f"Compared: {VERSIONS}.\n",
            "## Classes and functions\n",
            _rows(("name", "successor", "what to know", "other results without it"), classes),
            "## Arguments\n",
            _rows(("argument", "of", "default", "successor", "what to do", "other results"), fields),
            "## Defaults that differ\n",
            _rows(("argument", "optimum-habana", "transformers 5", "other results"), defaults),
            "## Keys of gaudi_config.json\n",
            _rows(("key", "what follows", "other results without it"), keys),
            "## Arguments that transformers 5 adds\n",
            f"Each may be a program's own argument already, which the rewriting keeps: {added}.\n",
            "## Next\n",
            "- [Migrate programs](../use/migrate.md): rewrite one by a command\n",
        )
    )
