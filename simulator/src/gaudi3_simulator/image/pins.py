"""The pinned Python packages of images and shelves, each with its hashes, and how pip comes by them.

torch is taken from one index, and everything else from the configured ones.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ..systems import System

_HERE = Path(__file__).resolve().parent
_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
BESIDE_TORCH = (
    "numpy",  # torch warns without it
    "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "setuptools", "sympy", "typing-extensions",
)  # fmt: skip
"""What torch asks for, and what these ask for."""


def requirements_file(name: str = "trainer") -> Path:
    """Pinned Python packages of the image: from the checkout, or beside this package when it is installed."""
    checkout = Path(__file__).resolve().parents[4] / "requirements" / f"{name}.txt"
    return checkout if checkout.exists() else _HERE / f"{name}.txt"


def requirements_files() -> list[Path]:
    """All files that the packages of an image with torch are pinned in."""
    return [requirements_file(), requirements_file("torch"), requirements_file("torch-cuda")]


@cache
def torch_index_arguments() -> list[str]:
    """pip options for a CPU-only torch: PyTorch's CPU index where it answers, else the configured indexes."""
    try:
        with urllib.request.urlopen(f"{_CPU_INDEX}/torch/", timeout=3):
            return ["--index-url", _CPU_INDEX]
    except (urllib.error.URLError, TimeoutError, OSError):
        return []


def torch_arguments(system: System | None = None) -> list[str]:
    """pip options for torch alone: its CPU build, or PyPI's with CUDA where no index has that."""
    foreign = [] if system is None else foreign_arguments(system)
    cpu = [*torch_index_arguments(), "--no-deps", "-r", str(requirements_file("torch"))]
    if torch_index_arguments() or _found([*foreign, *cpu]):
        return [*foreign, *cpu]
    return [*foreign, "--no-deps", "-r", str(requirements_file("torch-cuda"))]


def _found(arguments: list[str]) -> bool:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--require-hashes", "--only-binary=:all:"]
    return subprocess.run([*command, *arguments], capture_output=True, check=False).returncode == 0


def foreign_arguments(system: System) -> list[str]:
    """pip options for wheels that are for the node's Python, whatever runs this program."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == system.python:
        return []
    options = ["--python-version", system.python, "--implementation", "cp", "--only-binary=:all:"]
    for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
        options += ["--platform", f"{tag}_{platform.machine()}"]
    return options


def pip_runs(system: System, work: Path, names: Sequence[str] = ()) -> list[list[str]]:
    """Arguments for pip, one list for each run: torch, then what comes beside it; of that, these names alone.

    They come beside --require-hashes and --only-binary. `work` is a folder for a file of requirements.
    """
    rest = requirements_file()
    if names:
        rest = work / "beside-torch.txt"
        rest.write_text(selection(requirements_file().read_text(), names))
    beside = [*foreign_arguments(system), "--no-deps", "-r", str(rest)]
    return [torch_arguments(system), beside]


def selection(text: str, names: Sequence[str]) -> str:
    """The requirements of these names, with their hashes."""
    found = {match[1]: match[0] for match in re.finditer(r"^(\S+?)==(?:.*\\\n)*.*\n", text, re.MULTILINE)}
    return "".join(found[name] for name in names)
