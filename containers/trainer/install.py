"""Installs the trainer into the image that is built: the wheel, and what the base lacks of the list with hashes.

What the base has stays as it is, PyTorch above all. Runs in the image, with its Python and the standard library alone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from importlib.metadata import distributions
from pathlib import Path


def plain(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lacking(lines: Iterable[str], installed: Collection[str]) -> list[str]:
    """Those lines of a list of requirements whose distribution is not among the names."""
    wanted = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in wanted if plain(re.split(r"[^\w.-]", line)[0]) not in installed]


def install(build: Path, index: Path) -> None:
    """Install from the folder of the build; SystemExit, in one sentence, where that cannot be.

    The file ``index`` has the address of the package index, and is missing for pip's own. It may have a password, which
    no command line shows.
    """
    address = index.read_text(encoding="utf-8").strip() if index.is_file() else ""
    environment = {**os.environ, **({"PIP_INDEX_URL": address} if address else {})}
    installed = {plain(each.metadata["Name"]) for each in distributions() if each.metadata["Name"]}
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
    pip += ["--root-user-action=ignore", "--no-compile"]
    missing = lacking((build / "requirements.txt").read_text(encoding="utf-8").splitlines(), installed)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(missing) + "\n")
        file.flush()
        commands = [[*pip, "--require-hashes", "--only-binary=:all:", "--requirement", file.name]]
        commands = commands if missing else []
        wheels = sorted(map(str, (build / "wheels").glob("*.whl")))
        for command in [*commands, [*pip, "--no-index", *wheels]]:
            if subprocess.run(command, check=False, env=environment).returncode:
                sys.exit("pip could not install the trainer: see what it said above, and give --index for a mirror.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    install(Path(__file__).parent, parser.parse_args().index)
