"""What clients see of a node that serves: real HAProxy and the role's program, before a stand-in for vLLM.

`make proof-serving` asks the same of the real vLLM.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .contract import answers, differences
from .node import STAND_IN, Node, wait

MODEL = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the stand-in takes for a model."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(MODEL))
    return folder


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Two replicas and their balancer, none of them started."""
    found = Node(tmp_path / "node")
    yield found
    found.close()


def up(node: Node, model: Path, **environment: str) -> None:
    """Start all of it."""
    node.serve(node.release("first", model, STAND_IN, drain_seconds=60), environment)
    for replica in node.replicas:
        replica.start(ready=False)
    for replica in node.replicas:
        wait(replica.said, said=replica.name)
    node.start_balancer()
    wait(lambda: node.client.ask("/health").status == 200, said="the balancer")


def test_fifty_streams_survive_a_rolling_restart_and_see_a_lost_replica(node: Node, model: Path) -> None:
    """Retried before the first token, told after it."""
    up(node, model, STAND_IN_TOKEN="0.03", STAND_IN_FIRST="0.2", STAND_IN_DEATH="0.2")
    with ThreadPoolExecutor(60) as pool:
        streams = node.client.streams(pool, 50, 60)
        time.sleep(0.5)
        for replica in node.replicas:
            replica.restart()
        found = [each.result() for each in streams]
        assert Counter(each.whole for each in found) == {True: 50}, [each for each in found if not each.whole][:2]
        assert {len(each.tokens) for each in found} == {60}
        assert {replica.said()["ready"] for replica in node.replicas} == {True}

        # Half of the streams have their first token; then a server is killed while others wait for theirs.
        old = node.client.streams(pool, 20, 200)
        time.sleep(0.9)
        new = node.client.streams(pool, 20, 30)
        time.sleep(0.1)
        os.kill(node.replicas[0].children()[0], signal.SIGKILL)
        later = [each.result() for each in new]
        assert Counter(each.whole for each in later) == {True: 20}, [each for each in later if not each.whole][:2]
        lost = [each for each in (each.result() for each in old) if not each.whole]
        assert 5 < len(lost) < 15
        assert all(each.told and each.tokens for each in lost), "a client takes a cut answer for whole"
    # Nothing of the dead server is left, and systemd, which is not here, is told by the exit code.
    assert node.replicas[0].process is not None
    assert node.replicas[0].process.wait(10) == 1
    assert node.replicas[0].said()["ended"].startswith("The engine ended with exit code -9.")
    node.replicas[0].start()
    wait(lambda: "replica-1" in node_log(node), said="the balancer takes it back")


def node_log(node: Node) -> str:
    """What HAProxy has logged."""
    return (node.folder / "haproxy.log").read_text()


def test_the_balancer_lets_in_who_has_the_key_and_to_allowed_paths_alone(node: Node, model: Path) -> None:
    up(node, model)
    client = node.client
    assert client.complete("abc", 5).tokens == [97, 98, 99, 100, 101]
    assert client.ask("/v1/models").body["data"][0]["id"] == "job"
    for key in ("", "another"):
        denied = client.ask("/v1/models", key=key)
        assert (denied.status, denied.body["error"]["type"]) == (401, "AuthenticationError")
    for path in ("/docs", "/metrics", "/v1/completionsx", "/v1/models/x", "/version"):
        assert client.ask(path).status == 404, path
    assert client.ask("/health", key="").body == "ready"
    # Without TLS there is nothing.
    plain = type(client)("127.0.0.1", node.plan.port, key=client.key)
    assert plain.ask("/v1/models").status != 200
    pages = type(client)("127.0.0.1", node.plan.metrics_port)
    assert "haproxy_server_status" in pages.ask("/metrics").body
    for name in node.plan.replicas:
        assert "vllm:num_requests_running" in pages.ask(f"/{name}/metrics").body
    assert pages.ask("/v1/models").status == 404


def test_a_replica_that_is_not_ready_gets_nothing_and_can_be_ended(node: Node, model: Path) -> None:
    node.serve(node.release("first", model, STAND_IN), {"STAND_IN_WARM": "60"})
    (cold, other) = node.replicas
    cold.start(ready=False)
    wait(lambda: len(cold.children()) > 0)
    time.sleep(0.5)  # SIGTERM is lost from here on
    began = time.monotonic()
    assert cold.end() == 0
    assert time.monotonic() - began < 3, "who ends a warm-up need not wait for it"
    node.start_balancer()
    wait(lambda: node.client.ask("/health").status == 503, said="nobody is ready")
    assert node.client.complete("a", 1).status == 503
    node.serve(node.folder / "releases/first", {"STAND_IN_WARM": "0.1"})
    other.start()
    wait(lambda: node.client.ask("/health").status == 200)
    assert node.client.complete("a", 1).whole


def test_a_start_that_fails_says_why(node: Node, model: Path) -> None:
    node.serve(node.release("first", model, STAND_IN), {"STAND_IN_FAILS": "1"})
    (replica, slow) = node.replicas
    replica.start(ready=False)
    assert replica.process is not None
    assert replica.process.wait(10) == 1
    assert replica.said()["ended"] == (
        "The engine ended with exit code 1, not yet ready. Its last error: ValueError: the test wants it to fail"
    )
    node.serve(node.release("second", model, STAND_IN), {"STAND_IN_WARM": "60"}, start_seconds=1)
    slow.start(ready=False)
    assert slow.process is not None
    assert slow.process.wait(10) == 1
    assert slow.said()["ended"] == "The engine was not ready within 1 seconds."


def test_a_canary_gets_its_share(node: Node, model: Path) -> None:
    up(node, model)
    assert node.balancer is not None
    node.balancer.terminate()
    node.balancer.wait()
    node.start_balancer(canary="replica-2", canary_weight=20)
    wait(lambda: node.client.ask("/health").status == 200)
    for _each in range(60):
        assert node.client.complete("a", 1).whole
    share = Counter(line.split(" replicas/")[1].split()[0] for line in node_log(node).splitlines() if "POST" in line)
    assert 10 <= share["replica-2"] <= 14, share


def test_the_stand_in_behaves_as_its_contract_says(node: Node, model: Path) -> None:
    """The proof asks the real vLLM the same."""
    node.serve(node.release("first", model, STAND_IN, max_model_len=96), {"STAND_IN_TOKEN": "0.002"})
    replica = node.replicas[0]
    replica.start()
    assert differences(answers(node.plan.replicas["replica-1"], "job")) == []
