"""Sphinx's settings of the documentation site; `python -m website.build` gives it the staged source."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from website import repository  # noqa: E402

project = "gaudi3.scale"
author = "gaudi3.scale contributors"
version = release = repository.galaxy()["version"]
copyright = author
language = "en"

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_antsibull_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = [str(HERE / "theme/templates")]
highlight_language = "text"
# The lexer of PromQL does not know the colons in the names of recorded rules, and shows them anyway.
suppress_warnings = ["misc.highlighting_failure"]

myst_heading_anchors = 6
myst_enable_extensions = ["html_image", "deflist"]
# "site" is website.staging's scheme for files that are no pages.
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": "{{path}}"}

html_theme = "furo"
html_title = "gaudi3.scale"
html_static_path = [str(HERE / "theme/static")]
html_favicon = str(HERE / "theme/static/favicon.svg")
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_extra_path = [path for path in os.environ.get("GAUDI3_SITE_FILES", "").split(":") if path]
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_search_language = "en"
html_theme_options = {
    "sidebar_hide_name": False,
    "navigation_with_keys": False,
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#7fb8f0", "color-brand-content": "#7fb8f0"},
    "top_of_page_buttons": [],
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
# Output and files have nothing that a reader would type.
copybutton_selector = "div.highlight-sh pre, div.highlight-shell pre"


def page_context(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """What the foot of a page links to: its source in the repository, and itself as Markdown."""
    sources = json.loads(os.environ.get("GAUDI3_SITE_SOURCES", "{}"))
    context["source_address"] = repository.address(sources[name]) if name in sources else ""
    context["has_markdown"] = doctree is not None


def setup(app: Any) -> None:
    app.connect("html-page-context", page_context)
