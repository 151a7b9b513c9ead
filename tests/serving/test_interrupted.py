"""The module gaudi_serving, killed at one of its calls, and run again; and a canary that is taken back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies.serving_rollout import Rollout

from .module_node import ModuleNode, make_model


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ModuleNode]:
    """A node, its model and what it serves."""
    found = ModuleNode(tmp_path)
    yield found
    found.close()


def killed(node: ModuleNode, call: str, **options: Any) -> None:
    """A run that ends without a word at a call of systemctl, which does not happen any more."""
    place = node.folder / "bin/killing"
    place.write_text(
        f'#!/bin/sh\n[ "$*" = "{call}" ] && kill -9 $PPID && exit 1\nexec {node.options["systemctl_executable"]} "$@"\n'
    )
    place.chmod(0o755)
    with pytest.raises(AssertionError):  # it has answered nothing
        node.run(systemctl_executable=str(place), **options)


def test_what_was_served_before_a_killed_run_is_what_is_gone_back_to(node: ModuleNode) -> None:
    first = node.run()["current"]
    make_model(node.model, length=512)
    fails = {"environment": {"STAND_IN_FAILS": "1"}}
    killed(node, "restart gaudi3-serving-1.service", **fails)
    assert node.behind("current") != first
    failed = node.run(**fails)
    assert failed["msg"].endswith(f"{first} is served as before: correct the model or its settings, and run again."), (
        failed["msg"]
    )
    assert node.behind("current") == first and node.client.complete("a", 1).whole
    # A killed run that would have worked is ended by the next one, with the same way back.
    killed(node, "restart gaudi3-serving-2.service")
    third = node.run()
    assert third["changed"] and (third["current"] != first, third["previous"]) == (True, first)
    assert node.client.ask("/v1/models").body["data"][0]["max_model_len"] == 512
    assert not node.run()["changed"]
    killed(node, "restart gaudi3-serving-1.service", rollback=True)
    back = node.run(rollback=True)
    assert (back["current"], back["previous"]) == (first, ""), back
    assert node.run(rollback=True)["msg"].startswith("There is no version before the one that is served")


def test_a_removal_that_was_killed_is_ended_by_the_next(node: ModuleNode) -> None:
    node.run()
    client = node.client
    killed(node, "stop gaudi3-serving-2.service", state="absent")
    assert node.run(state="absent")["changed"]
    assert [each.name for each in (node.folder / "units").glob("*.service")] == []
    assert sorted(path.name for path in node.root.iterdir()) == ["current", "releases"]
    assert client.ask("/health").error


def test_a_pipe_in_the_place_of_what_a_replica_says_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "state.json")
    monkeypatch.setattr(Rollout, "_settings", lambda *_given: {"state": str(tmp_path / "state.json")})
    assert Rollout._why(Rollout.__new__(Rollout), 1) == ""


def test_one_step_back_from_a_canary_is_what_the_others_serve(node: ModuleNode) -> None:
    first = node.run()["current"]
    make_model(node.model, length=512)
    tried = node.run(canary=True)
    assert (tried["current"], tried["previous"]) == (first, "")
    back = node.run(rollback=True)
    assert (back["current"], back["previous"], back["canary"]) == (first, "", ""), back
    lengths = {node.client.ask("/v1/models").body["data"][0]["max_model_len"] for _each in range(6)}
    assert lengths == {4096}
