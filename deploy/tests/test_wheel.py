"""Installed by pip, the command has its Terraform tree and needs no checkout; nothing of a user's gets into it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_has_the_tree_and_runs_anywhere(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", ".terraform", "terraform.tfstate.d")
    for each in ("deploy", "terraform", "plugins/module_utils"):
        shutil.copytree(ROOT / each, tmp_path / "checkout" / each, ignore=ignored, symlinks=True)
    own = tmp_path / "checkout/terraform/ibm"
    for name in ("terraform.tfvars.json", "backend.tf", "terraform.tfstate.json", ".terraform/modules/modules.json"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("{}")
    given = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GAUDI3_TERRAFORM_DIR", "GAUDI3_DEPLOYMENTS")
    }
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(build, cwd=tmp_path / "checkout/deploy", env=given, check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("gaudi3_deploy/terraform/")]
        # As files, each once; not a link that leads nowhere here.
        code = [each for each in archive.infolist() if each.filename.startswith("gaudi3_deploy/collection/")]
        assert all(b"from __future__" in archive.read(each) for each in code if "__init__" not in each.filename)
        read = sorted(each.filename.removeprefix("gaudi3_deploy/collection/") for each in code)
        assert read == sorted({*read}) and {"_refusal.py", "_terraform/plan.py", "_terraform/cluster.py"} <= {*read}
        archive.extractall(tmp_path / "installed")
    assert {"gaudi3_deploy/terraform/catalogue/instances.json", "gaudi3_deploy/terraform/ibm/main.tf"} <= {*names}
    wanted = {str(path.relative_to(ROOT)) for path in ROOT.joinpath("terraform").rglob("*.tf")}
    mine = {name.removeprefix("gaudi3_deploy/") for name in names}
    assert {each for each in wanted if "/." not in each and "/tests/" not in each} <= mine
    assert [each for each in names if "tfvars" in each or "backend" in each or "tfstate" in each or "/." in each] == []

    # Run where there is no checkout, with the dependencies of this environment and the wheel's own code.
    shutil.rmtree(tmp_path / "checkout")
    (tmp_path / "empty").mkdir()
    environment = {**given, "PYTHONPATH": str(tmp_path / "installed"), "HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    environment.pop("XDG_STATE_HOME", None)
    command = [sys.executable, "-m", "gaudi3_deploy"]
    where = {"cwd": tmp_path / "empty", "env": environment, "text": True, "timeout": 60}
    offers = subprocess.run([*command, "offers", "--json"], capture_output=True, check=False, **where)  # type: ignore[call-overload]
    assert offers.returncode == 0, offers.stderr
    (found,) = (each for each in json.loads(offers.stdout)["offers"] if each["cloud"] == "ibm")
    assert (found["type"], found["cards"]) == ("gx3d-160x1792x8gaudi3", 8)
    # The root module of a cloud is found, too: this fails for the want of a terraform, and of nothing else.
    new = ["--terraform", "none", "plan", "demo", "--cloud", "ibm", "--size", "8", "--type", "gx3d-160x1792x8gaudi3"]
    refused = subprocess.run([*command, *new], capture_output=True, check=False, **where)  # type: ignore[call-overload]
    assert "The command 'none' is not on this machine" in refused.stderr
    assert (tmp_path / "home/.local/state/gaudi3-deploy/.terraform/ibm/main.tf").is_file()
    assert list((tmp_path / "empty").iterdir()) == []
