"""What a node carries from before: traces of those who prepared it by hand or with the vendor's installer."""

from __future__ import annotations

from dataclasses import dataclass

from .node import strictness

REPOSITORY = "http://vault/artifactory/debian"
# The vendor's Dockerfiles call it habana-artifactory.gpg; an armored key needs this ending.
KEYRING = "/usr/share/keyrings/habana-artifactory.asc"
VENV = "/root/habanalabs-venv"


@dataclass(frozen=True)
class File:
    """A file of the node; a link where it has a target."""

    text: str = ""
    mode: int = 0o644
    target: str = ""


def files(key: str = "") -> dict[str, File]:
    """Every such file, by its path on the node; ``key`` is the repository's, by which apt reads it."""
    found: dict[str, File] = {}
    if strictness.is_on("vendor-sources-file"):
        # The name is the installer's; its line is not public, and has the form of the vendor's Dockerfiles here.
        line = f"deb [signed-by={KEYRING}] {REPOSITORY} noble main\n"
        found["/etc/apt/sources.list.d/habanalabs_synapseai.list"] = File(line)
        if key:
            found[KEYRING] = File(key)
    if strictness.is_on("venv-in-closed-home"):
        # The installer's default place, below a home that is closed to other users; it holds no PyTorch here.
        settings = {"home": "/usr/bin", "include-system-site-packages": "false", "version": "3.11.2"}
        found[f"{VENV}/pyvenv.cfg"] = File("".join(f"{name} = {value}\n" for name, value in settings.items()))
        found[f"{VENV}/bin/python"] = File(target="/usr/bin/python3")
        found[f"{VENV}/bin/python3"] = File(target="python")
    return found
