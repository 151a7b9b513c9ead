"""The command that a finished training names runs as it is printed: on one node, and on all that it is printed on."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Job, free_port
from torch.distributed import run as torchrun
from zygote import Client

from gaudi3_scale.checkpoint import CheckpointStore
from gaudi3_scale.config import load
from gaudi3_scale.job.fit import _nodes_of_checkpoint
from gaudi3_scale.launch import torchrun as launching
from gaudi3_scale.next_command import LAUNCHER, command_line, meeting, next_command


def test_the_arguments_of_the_training_are_those_of_the_export(tmp_path: Path) -> None:
    given = ["gaudi3-train", "fit", "--config", "my job.yml", "train.max_steps=5"]
    said = "next: gaudi3-train export --to {} --config 'my job.yml' train.max_steps=5"
    assert next_command(given, here=tmp_path) == said.format("model")
    (tmp_path / "model").mkdir()
    assert next_command(given, here=tmp_path) == said.format("model"), "an empty folder will do"
    (tmp_path / "model" / "config.json").touch()
    (tmp_path / "model-2").symlink_to("nowhere")
    (tmp_path / "model-3").touch()
    assert next_command(given, here=tmp_path) == said.format("model-4")


def test_a_program_that_a_shell_does_not_find_is_named_by_its_path(tmp_path: Path, monkeypatch: Any) -> None:
    program = tmp_path / "bin" / "gaudi3-train"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    assert next_command([str(program), "fit"], here=tmp_path) == f"next: {program} export --to model"
    module = ["/lib/gaudi3_scale/__main__.py", "fit"]
    assert next_command(module, here=tmp_path) == f"next: {sys.executable} -m gaudi3_scale export --to model"
    monkeypatch.setenv("PATH", str(program.parent))
    assert next_command([str(program), "fit"], here=tmp_path) == "next: gaudi3-train export --to model"


@pytest.mark.parametrize("arguments", [[], ["gaudi3-train"], ["gaudi3-train", "tune"], ["/home/me/train.py", "fit"]])
def test_another_program_is_told_no_command(arguments: list[str]) -> None:
    assert next_command(arguments) == ""


def test_a_command_on_several_processes_has_the_launcher(monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", ["gaudi3-train"])
    assert command_line("fit", "--config", "a b/job.yml") == "gaudi3-train fit --config 'a b/job.yml'"
    launched = f"{sys.executable} -m gaudi3_scale.launch --nproc-per-node=2 "
    assert command_line("goodput", "x", processes=2) == f"{launched}--no-python gaudi3-train goodput x"
    monkeypatch.setattr(sys, "argv", ["/lib/gaudi3_scale/__main__.py"])
    assert command_line("fit", processes=2) == f"{launched}-m gaudi3_scale fit"


PARTS = ["--nnodes=2", "--nproc-per-node=8"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            ["--replace", "--status=s.json", "--max-restarts=3", "--rdzv-backend=c10d", "--rdzv-endpoint=head:29400",
             "--rdzv-id=demo", "--secret-file=/run/secret"],
            ["--rdzv-backend=c10d", "--rdzv-endpoint=head:29400", "--rdzv-id=export", "--secret-file=/run/secret"],
        ),
        (
            ["--node-rank=1", "--master-addr=head", "--master-port=29501", "--local-addr=10.0.0.7"],
            ["--master-addr=head", "--master-port=29501", "--node-rank=1", "--local-addr=10.0.0.7"],
        ),
    ],
)  # fmt: skip
def test_nodes_meet_for_the_export_as_they_did_and_not_as_a_job(given: list[str], kept: list[str]) -> None:
    args, _ = launching._parse(torchrun, [*PARTS, *given, "--no-python", "gaudi3-train", "fit"])
    environment = {LAUNCHER: json.dumps(meeting(args))}
    command = next_command(["gaudi3-train", "fit", "a=b"], 2, environment, Path("/nowhere"))
    where, _, words = command.partition(": ")
    assert where == "next, on every node"
    assert shlex.split(words)[1:] == [
        *("-m", "gaudi3_scale.launch", "--nnodes=2", "--nproc-per-node=1", *kept, "--no-python"),
        *("gaudi3-train", "export", "--to", "model", "a=b"),
    ]
    launching._parse(torchrun, shlex.split(words)[3:])  # it takes them
    assert next_command(["gaudi3-train", "fit"], 2, {}, Path("/nowhere")) == (
        "next, on every node under the launcher that fit had: gaudi3-train export --to model"
    )


def test_the_launcher_tells_its_workers_how_its_nodes_meet(warm: Client, tmp_path: Path) -> None:
    script, port = tmp_path / "train.py", free_port()
    script.write_text(
        f"import os, pathlib\npathlib.Path({str(tmp_path / 'told')!r}).write_text(os.environ['{LAUNCHER}'])"
    )
    met = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"]
    launcher = warm.start(
        "launch", ["--nnodes=1", *met, "--rdzv-id=x", "--no-python", str(script)], {}, tmp_path / "log"
    )
    assert launcher.communicate(timeout=60)[1] is None and launcher.returncode == 0
    assert json.loads((tmp_path / "told").read_text()) == [*met, "--rdzv-id=export"]


def test_the_printed_command_runs_as_it_is_printed(reference: tuple[Job, str], warm: Client, tmp_path: Path) -> None:
    goodput = reference[1].partition(" s; ")[2].partition(" shows where the rest went\n")[0]
    shown = warm.start("worker", shlex.split(goodput)[3:], {}, tmp_path / "shown")
    assert "goodput" in shown.communicate(timeout=60)[0] and shown.returncode == 0
    python, *words = shlex.split(reference[1].splitlines()[-1].partition("; next: ")[2])
    assert Path(shutil.which(python) or "").samefile(sys.executable)
    assert words[:5] == ["-m", "gaudi3_scale", "export", "--to", "model"]
    words[4] = str(tmp_path / "model")  # the tests are typed elsewhere
    done = warm.start("worker", words[2:], {}, tmp_path / "log")
    assert f" in {words[4]}\n" in done.communicate(timeout=60)[0] and done.returncode == 0
    assert (tmp_path / "model" / "model.safetensors").is_file()


def run_of(node: Path, *overrides: str) -> Any:
    """As far as the last checkpoint is concerned."""
    store = CheckpointStore(node / "checkpoints", 2)
    return SimpleNamespace(
        progress=SimpleNamespace(checkpoint_step=max(store.steps(), default=None)),
        config=load(None, overrides),
        checkpoints=SimpleNamespace(store=store),
        process_group=SimpleNamespace(topology=SimpleNamespace(nodes=2)),
    )


def test_a_node_that_lacks_files_needs_the_others_or_the_target(reference: tuple[Job, str], tmp_path: Path) -> None:
    whole = reference[0].node()
    assert _nodes_of_checkpoint(run_of(whole)) == _nodes_of_checkpoint(run_of(tmp_path)) == 1
    step = max(reference[0].steps())
    part = tmp_path / "checkpoints" / f"step-{step:08d}"
    part.mkdir(parents=True)
    manifest = json.loads((whole / "checkpoints" / part.name / "manifest.json").read_text())
    (part / "manifest.json").write_text(json.dumps(manifest | {"here": manifest["here"][:1]}))
    assert _nodes_of_checkpoint(run_of(tmp_path)) == 2
    assert _nodes_of_checkpoint(run_of(tmp_path, f"checkpoint.target={tmp_path}")) == 1
