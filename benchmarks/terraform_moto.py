"""How long Terraform takes for a cluster on AWS as moto plays it; a table in Markdown. No time of it is one of AWS.

python benchmarks/terraform_moto.py
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.terraform.support.account import moto_account  # noqa: E402  (the path must be set first)
from tests.terraform.support.tool import Project, copied  # noqa: E402

TYPE = "-var=instance_type=dl1.24xlarge"
SIZES = {16: "-var=cluster_size=16", 32: "-var=cluster_size=32"}


def main() -> None:
    """Measure each command once, in the order of a cluster's life."""
    with tempfile.TemporaryDirectory() as name, moto_account(Path(name), "us-west-2") as account:
        tree = copied(ROOT / "terraform", Path(name) / "terraform")
        project = Project(tree / "aws", account.environment, account.missing)
        project.init("hashicorp/aws")
        rows = []
        for what, command, size in (
            ("plan, nothing there", "plan", 16),
            ("apply, 16 cards and a monitor", "apply", 16),
            ("plan, nothing to change", "plan", 16),
            ("apply, two nodes more", "apply", 32),
            ("destroy, 32 cards and a monitor", "destroy", 32),
        ):
            done = project.change(command, SIZES[size], TYPE, limit=600)
            assert done.code == 0, done.output
            state = json.loads(project.state.read_text()) if project.state.exists() else {"resources": []}
            made = [each for each in state["resources"] if each["mode"] == "managed"]
            rows.append((what, done.seconds, sum(len(each["instances"]) for each in made)))
        version = json.loads(project.run("version", "-json").output)
    provider = next(iter(version["provider_selections"].values()), "?")
    print(
        f"{datetime.now(tz=UTC).date()}, Terraform {version['terraform_version']}, provider aws {provider}, moto in "
        f"AWS's place, {os.cpu_count()} cores, {platform.system()}:\n"
    )
    print("| what | seconds | resources afterwards |\n|---|---|---|")
    for what, seconds, resources in rows:
        print(f"| {what} | {seconds:.0f} | {resources} |")


if __name__ == "__main__":
    main()
