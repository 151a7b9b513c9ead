"""What antsibull-docs writes is mended for the theme."""

from __future__ import annotations

from pathlib import Path

from website import collection

PAGE = """:orphan:

.. _ansible_collections.gaudi3.scale.x_module:

gaudi3.scale.x module -- Do it
++++++++++++++++++++++++++++++

.. Collection note

.. note::
    This module is part of the collection.

    To install it, use: something.

.. version_added

.. contents::
   :local:
   :depth: 1

Synopsis
--------

See :ref:`here <common_return_values>` and :ref:`gaudi3.scale.x <ansible_collections.gaudi3.scale.x_module>`.
"""


def test_a_page_has_a_short_title_and_no_contents_of_its_own() -> None:
    text = collection.mended(PAGE)
    assert "x (module)\n++++++++++\n\nDo it.\n" in text
    assert "contents::" not in text and "note::" not in text
    assert text.endswith(PAGE[PAGE.index("Synopsis") :])


def test_labels_of_ansibles_own_documentation_get_a_place(tmp_path: Path) -> None:
    (tmp_path / "x_module.rst").write_text(PAGE)
    assert collection.labels(tmp_path) == "\n(common_return_values)=\n\n## Common return values\n"


def test_the_sidebar_has_what_playbooks_use() -> None:
    internal = f"y\n\n{collection.INTERNAL}: write a file.\n"
    texts = {"x_module": "x", "y_module": internal, "z_role": "z", "w_filter": "w"}
    assert collection.public(texts) == ["z_role", "x_module", "environment_variables"]
    index = collection.index("Gaudi3.Scale\n============\n\n.. toctree::\n    :maxdepth: 1\n\nEnd\n", ["x_module"])
    assert index.startswith("Modules and roles\n=================\n") and index.endswith(":hidden:\n\n   x_module\n")
