"""`python -m tests.dashboards` writes the dashboards of the role grafana anew."""

from __future__ import annotations

from tests.dashboards.grafana import files

if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
