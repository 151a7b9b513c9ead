"""The reference pages, which are generated from the code at each build and never committed.

`pages` has every generated file by its path below the site's source: Markdown, and JSON schemas, which the site copies
as they are. Each page is a pure function in a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from website.reference import (
    alerts,
    calculator,
    commands,
    configuration,
    metrics,
    optimum_habana,
    playbooks,
    schemas,
    schemas_page,
    variables,
)

#: Path, title, what for, and what writes it; in the order of the sidebar.
PAGES: tuple[tuple[str, str, str, Callable[[], str]], ...] = (
    ("reference/variables.md", variables.TITLE, "every variable of the inventory, by role", variables.page),
    ("reference/commands.md", commands.TITLE, "every command, with its options", commands.page),
    ("reference/configuration.md", configuration.TITLE, "every key of a job file", configuration.page),
    ("reference/playbooks.md", playbooks.TITLE, "what each playbook does, and on which hosts", playbooks.page),
    ("reference/metrics.md", metrics.TITLE, "the names of all metrics", metrics.page),
    ("reference/alerts.md", alerts.TITLE, "when each alert fires, and its runbook", alerts.page),
    (
        "reference/optimum-habana-table.md",
        optimum_habana.TITLE,
        "what follows each class and argument, for a migration",
        optimum_habana.page,
    ),
    ("reference/schemas.md", schemas_page.TITLE, "completion and checks in an editor", schemas_page.page),
)
CALCULATOR = "clouds/cost-calculator.md"


def pages() -> dict[str, str | bytes]:
    """Each generated file by its path below the site's source, such as `reference/variables.md`."""
    found: dict[str, str | bytes] = {path: page() for path, _title, _what, page in PAGES}
    found[CALCULATOR] = calculator.page()
    return found | {f"schemas/{name}": text for name, text in schemas.files().items()}


def shelf() -> list[tuple[str, str, str]]:
    """The generated pages: path below the source, whose first folder is the shelf; title; what for."""
    listed = [(path, title, what) for path, title, what, _page in PAGES]
    return [*listed, (CALCULATOR, calculator.TITLE, "estimate what a training costs, in the browser")]
