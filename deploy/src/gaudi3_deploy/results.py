"""What a job has written, from its first node to this machine."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from gaudi3_deploy import ssh
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.record import Deployment

JOBS = "/var/lib/gaudi3-scale/jobs"


def fetch(deployment: Deployment, node: str, job: str, target: Path, log: Callable[[str], None]) -> Path:
    """Bring a job's folder with its checkpoints, whole or not at all. Raises DeployError where it was not brought."""
    target.mkdir(parents=True, exist_ok=True)
    command = f'sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo -n"; $sudo tar -C {JOBS} -cf - {job}'
    called = [*ssh.arguments(deployment), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", node, command]
    with tempfile.TemporaryDirectory(dir=target, prefix=".fetching-") as folder:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(called, stdout=subprocess.PIPE, stderr=errors) as process,
        ):
            broken = ""
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                    archive.extractall(folder, filter="data")
            except (tarfile.TarError, OSError) as error:
                broken = str(error)
            code = process.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
        if code or broken or not Path(folder, job).is_dir():
            reason = said[-1] if said else broken or f"exit code {code}"
            raise DeployError(
                f"What job {job} has written on {node} was not brought here ({reason}): it is in {JOBS}/{job}."
            )
        there = target / job
        if there.exists():
            shutil.rmtree(there)
        Path(folder, job).replace(there)
    log(f"results: {there}")
    return there
