"""A folder from which Terraform installs the stand-in under the provider's name, and the settings that use it.

The lock file that ``terraform init`` then writes has the stand-in's hash, which would lock the true provider out: call
it in a copy of the tree only.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = "registry.terraform.io"
#: Provider to its address in the registry, whose folders are lower-case.
SOURCES = {"ibm": "IBM-Cloud/ibm"}
MODULE = "gaudi3_simulator.cloud.serve"
SOURCE_FOLDER = Path(__file__).resolve().parents[2]


def machine() -> str:
    """This machine, as Terraform calls it."""
    kind = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}_{kind}"


def make(folder: Path, provider: str, version: str, python: Path) -> Path:
    """Write the mirror below a folder, and the file for TF_CLI_CONFIG_FILE, whose path is returned."""
    name = f"terraform-provider-{provider}_v{version}"
    place = folder / "mirror" / HOST / SOURCES[provider].lower() / version / machine()
    place.mkdir(parents=True, exist_ok=True)
    script = place / name
    command = f"exec {shlex.quote(str(python))} -m {MODULE} {provider} {version}"
    script.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(SOURCE_FOLDER))} {command}\n")
    script.chmod(0o755)
    settings = folder / "terraformrc"
    # No other way to install: nothing is ever asked of a network.
    settings.write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path    = "{folder / "mirror"}"\n'
        f'    include = ["{HOST}/{SOURCES[provider]}"]\n  }}\n}}\n'
    )
    return settings


def environment(settings: Path, world: Path) -> dict[str, str]:
    """What Terraform needs in its environment. The key is made up: without any, stand-in and provider refuse."""
    return {
        "TF_CLI_CONFIG_FILE": str(settings),
        "GAUDI3_STANDIN_WORLD": str(world),
        "IC_API_KEY": "standin",
        "CHECKPOINT_DISABLE": "1",
    }


@contextmanager
def attached(provider: str, version: str, python: Path, settings: dict[str, str]) -> Iterator[dict[str, str]]:
    """The settings with a stand-in that stays for many calls, in the place of one that each call starts."""
    own = {**os.environ, **settings, "PYTHONPATH": str(SOURCE_FOLDER)}
    command = [str(python), "-m", MODULE, provider, version, "attach"]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield {**settings, "TF_REATTACH_PROVIDERS": process.stdout.readline().strip()}
        finally:
            process.terminate()
