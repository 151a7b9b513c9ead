"""A plugin that `import torch` loads by itself and that cannot be loaded: the job says why, and processors work on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REASON = "libSynapse.so: cannot open shared object file: No such file or directory"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which Intel's plugin is installed, and broken."""
    packages = tmp_path / "packages"
    package, about = packages / "habana_frameworks", packages / "habana_torch_plugin-1.24.1.dist-info"
    (package / "torch").mkdir(parents=True)
    (package / "__init__.py").write_text("def __autoload():\n    import habana_frameworks.torch\n")
    (package / "torch" / "__init__.py").write_text(f"raise ImportError({REASON!r})\n")
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.24.1\n")
    (about / "entry_points.txt").write_text("[torch.backends]\ndevice_backend = habana_frameworks:__autoload\n")
    return {**os.environ, "PYTHONPATH": str(packages)}


def fit(folder: Path, device: str) -> list[str]:
    text = folder / "text.txt"
    text.write_text("It is broken. " * 200)
    settings = {
        "output_dir": folder / "job",
        "device": device,
        "data.source": text,
        "model.hidden_size": 16,
        "model.intermediate_size": 32,
        "model.layers": 1,
        "model.heads": 2,
        "model.kv_heads": 1,
        "model.sequence_length": 16,
        "train.max_steps": 1,
        "train.threads": 1,
        "metrics.enabled": "false",
    }
    return ["-m", "gaudi3_scale", "fit", *(f"{key}={value}" for key, value in settings.items())]


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_the_status_of_a_launched_job_says_why(environment: dict[str, str], tmp_path: Path) -> None:
    launch = ("-m", "gaudi3_scale.launch", "--nproc-per-node=1", "--no-python", sys.executable)
    done = run(environment, *launch, *fit(tmp_path, "hpu"))
    assert done.returncode == 2, done.stderr
    status = json.loads((tmp_path / "job" / "status.json").read_text())
    assert status["state"] == "failed"
    assert status["error"] == (
        f"torch cannot load the plugin of this node's cards (ImportError: {REASON}): repair the installation of "
        "habana-torch-plugin, or set device to cpu to train on the node's processors."
    )
    assert f"gaudi3-train: {status['error']}\n" in done.stderr
    assert "Traceback" not in done.stderr.partition("gaudi3-train: ")[0]


def test_processors_need_no_plugin(environment: dict[str, str], tmp_path: Path) -> None:
    done = run(environment, *fit(tmp_path, "cpu"))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "job" / "status.json").read_text())["device"] == "cpu"
