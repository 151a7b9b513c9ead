"""The parts of an apt node that touch it: other sources of the same repository, and the ages of its lists."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import apt_node
from ansible_collections.gaudi3.scale.plugins.module_utils.apt_node import Node, consult
from ansible_collections.gaudi3.scale.plugins.module_utils.apt_repository import RepositoryError, Source

SOURCE = Source("http://vault/debian", "jammy", "http://vault/key")


def node(commands: list[list[str]], on_run: Any = None) -> Node:
    def run(command: list[str]) -> tuple[int, str, str]:
        commands.append(command)
        if on_run:
            on_run()
        return 0, "", ""

    module: Any = SimpleNamespace(run_command=run)
    return Node(module, 5)


def test_a_repository_that_another_file_names_is_refused_before_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = tmp_path / "vendor.list"
    vendor.write_text("deb http://vault/debian jammy main\n")
    monkeypatch.setattr(apt_node.glob, "glob", lambda pattern: [str(vendor)] if pattern.endswith(".list") else [])

    def fetch(url: str, _timeout: int) -> bytes:
        raise AssertionError(f"{url} was asked")

    monkeypatch.setattr(apt_node, "fetch", fetch)
    with pytest.raises(RepositoryError) as caught:
        consult(node([]), SOURCE, None, ["habanalabs-dkms"], "1.23.0-695")
    assert str(caught.value) == (
        f"{vendor} names http://vault/debian already, which apt refuses to have twice; remove that file and run again."
    )


def test_a_refresh_of_the_vendors_lists_does_not_make_the_distributions_look_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, stamp, missing = tmp_path / "lists", tmp_path / "stamp", tmp_path / "missing"
    lists.mkdir()
    stamp.touch()
    old = 1_600_000_000_123_456_789
    for path in (lists, stamp):
        os.utime(path, ns=(old, old))
    monkeypatch.setattr(apt_node, "_LIST_AGES", (str(lists), str(stamp), str(missing)))

    def refresh() -> None:
        (lists / "vendor_InRelease").touch()
        os.utime(stamp)

    commands: list[list[str]] = []
    node(commands, refresh).refresh_vendor_lists("/usr/bin/apt-get")
    assert [command[:2] for command in commands] == [["/usr/bin/apt-get", "update"]]
    assert [path.stat().st_mtime_ns for path in (lists, stamp)] == [old, old]
    assert not missing.exists()
