"""Exports of what no node has whole: from all nodes under the launcher, or from the target."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
from pathlib import Path

import pytest
from conftest import Job, assert_same, free_port, zygote
from safetensors.torch import load_file

from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job.export import export
from gaudi3_scale.next_command import LAUNCHER, next_command

STEP = 5


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory, text: Path) -> Job:
    """A job of two nodes, each with its own shard only, and a target with both."""
    made = Job(tmp_path_factory.mktemp("spread") / "job", text, nodes=2)
    made.run(
        "train.strategy=habana_fsdp",
        f"train.max_steps={STEP}",
        "train.micro_batch_size=4",
        "train.collective_timeout=60",
        "checkpoint.copies=1",
        f"checkpoint.target={made.folder / 'target'}",
        "checkpoint.job=spread",
    )
    return made


def test_a_node_that_lacks_files_is_told_which_node_has_them(spread: Job, tmp_path: Path) -> None:
    checkpoints = spread.node(1) / "checkpoints"
    with pytest.raises(ConfigError) as error:
        export(load(None, [f"output_dir={spread.node(1)}"]), tmp_path / "model", None, False, "float32")
    assert str(error.value) == (
        f"The checkpoint in {checkpoints} cannot be exported (1 of its 4 files are not here, as __0_0.distcp, which "
        f"rank 0 wrote on node {socket.gethostname()}): run gaudi3-train export on all nodes of the job under "
        "gaudi3_scale.launch, as fit was, or set checkpoint.target to where the job uploads to."
    )
    assert list(tmp_path.iterdir()) == []


def test_all_nodes_export_together_and_the_target_alone_does(spread: Job, tmp_path: Path) -> None:
    launchers, met = [], ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=export"]
    for node in (0, 1):
        fit = ["gaudi3-train", "fit", f"output_dir={spread.node(node)}", f"data.source={spread.text}"]
        printed = next_command(fit, 2, {LAUNCHER: json.dumps(met)}, tmp_path).partition(": ")[2]
        words = printed.replace(" --to model ", f" --to {tmp_path / f'model{node}'} ")  # the tests are typed elsewhere
        _, module, launcher, *rest = shlex.split(words)
        assert (module, launcher) == ("-m", "gaudi3_scale.launch")
        launchers.append(zygote().start("launch", rest, {}, tmp_path / f"log{node}"))
    outputs = [launcher.communicate(timeout=120)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], outputs
    written = [tmp_path / name for name in ("model0", "model1") if (tmp_path / name).exists()]
    assert len(written) == 1 and f"step {STEP} in {written[0]}" in "".join(outputs)
    assert {path.name for path in tmp_path.iterdir()} == {written[0].name, "log0", "log1"}

    target = f"checkpoint.target={spread.folder / 'target'}"
    one = load(None, [f"output_dir={spread.node(1)}", target])
    assert export(one, tmp_path / "from-one", STEP, False, "float32") == (STEP, True)
    assert not (spread.node(1) / "checkpoints" / f"step-{STEP:08d}" / "__0_0.distcp").exists()
    tensors = load_file(written[0] / "model.safetensors")
    assert_same(load_file(tmp_path / "from-one" / "model.safetensors"), tensors)
    whole = tmp_path / "whole" / "checkpoints" / f"step-{STEP:08d}"
    for node in (1, 0):
        shutil.copytree(spread.node(node) / "checkpoints" / whole.name, whole, dirs_exist_ok=True)
    manifest = whole / "manifest.json"
    manifest.write_text(manifest.read_text().replace('".metadata",\n  "__0', '".metadata",\n  "__1_0.distcp",\n  "__0'))
    assert export(load(None, [f"output_dir={tmp_path / 'whole'}"]), tmp_path / "alone", None, False, "float32")
    assert_same(load_file(tmp_path / "alone" / "model.safetensors"), tensors)


def test_the_target_is_enough_on_a_node_that_has_nothing(spread: Job, tmp_path: Path) -> None:
    """Its job is known by its name; the tokenizer stays with the prepared data of the nodes."""
    empty = [f"output_dir={tmp_path / 'empty'}", f"checkpoint.target={spread.folder / 'target'}"]
    found = load(None, [*empty, "checkpoint.job=spread"])
    assert export(found, tmp_path / "model", None, False, "float32") == (STEP, False)
    here = load(None, [f"output_dir={spread.node(0)}", empty[1], f"data.source={spread.text}"])
    assert export(here, tmp_path / "same", STEP, False, "float32") == (STEP, True)
    assert_same(*(load_file(tmp_path / name / "model.safetensors") for name in ("model", "same")))
    with pytest.raises(
        ConfigError, match=r"^There is no whole checkpoint in .*/empty/checkpoints: give the output_dir"
    ):
        export(load(None, [*empty, "checkpoint.job=other"]), tmp_path / "other", None, False, "float32")
    assert {path.name for path in tmp_path.iterdir()} <= {"empty", "model", "same"}
