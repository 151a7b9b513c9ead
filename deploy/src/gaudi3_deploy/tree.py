"""The Terraform tree that is run: a copy beside the deployments' records.

So no checkout holds the state of a cluster that costs money.

Local states of all deployments of a folder lie in its `.terraform/CLOUD/terraform.tfstate.d/NAME`. Only a workspace
whose state lies in the tree itself already, as `terraform` and `provision.yml` leave it there, is worked on there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gaudi3_deploy.errors import UsageError

CATALOGUE = Path("catalogue/instances.json")
PACKAGED = Path(__file__).resolve().parent / "terraform"
#: The tree of the checkout that an editable installation is of.
SOURCE = Path(__file__).resolve().parents[3] / "terraform"


def find(given: Path | None) -> Path:
    """The folder with aws/, ibm/, ...: as given, of the checkout around, or the one that came with the package."""
    if given is not None:
        return given.resolve()
    here = Path("terraform").resolve()
    for each in (here, PACKAGED, SOURCE):
        if (each / CATALOGUE).is_file():
            return each
    raise UsageError(
        f"There are no Terraform files in {here}, and none came with this installation: give the folder that holds "
        "aws/, ibm/, ... with --terraform-dir."
    )


def root(tree: Path, deployments: Path, cloud: str, name: str) -> Path:
    """The root module to run Terraform in for a deployment; it is brought up to date with the tree."""
    there = tree / cloud
    state = there / "terraform.tfstate.d" / name / "terraform.tfstate"
    if not any(there.glob("*.tf")) or (state.exists() and state.stat().st_size):
        return there
    copy = deployments / ".terraform"
    _private(copy)
    # Two commands of different deployments may come here at once.
    with (copy / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _bring_up_to_date(tree, copy)
    return copy / cloud


def _private(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _bring_up_to_date(tree: Path, copy: Path) -> None:
    """Make the copy's files those of the tree; states, and what `terraform init` wrote, stay."""
    wanted = {path.relative_to(tree): path for path in _files(tree)}
    for relative, path in wanted.items():
        target = copy / relative
        if not target.is_file() or target.read_bytes() != path.read_bytes():
            _private(target.parent)
            shutil.copyfile(path, target.with_name(f".{target.name}.new"))
            target.with_name(f".{target.name}.new").replace(target)
        lock = path.parent / ".terraform.lock.hcl"
        if relative.name.endswith(".tf") and lock.is_file() and not (target.parent / lock.name).exists():
            shutil.copyfile(lock, target.parent / lock.name)
    for path in [*_files(copy)]:
        if path.relative_to(copy) not in wanted and not path.name.endswith(OWN):
            path.unlink()


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".") and each not in LEFT_OUT]
        yield from (Path(parent, name) for name in names if not name.startswith(".") and ".tfstate" not in name)


#: What a user adds to a root module: it stays where it was put.
OWN = ("backend.tf", "_override.tf", ".tfvars", ".tfvars.json")
LEFT_OUT = {"terraform.tfstate.d", "tests", "__pycache__"}
