"""A run on record: what was asked for, how far it is, and when it has to end, whatever is killed in between.

    deployments/NAME/run.json     the job's file and its digest, limits, and the stage that is to be done next

Each stage does nothing over again where it was done: a run that was killed goes on at the stage that it was in.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gaudi3_deploy import estimate, given_file, yaml_file
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.record import Deployment, Period, write_atomically

FILE = "run.json"
#: `stop` saves the job where its money or its time is spent.
STAGES = ("check", "up", "wait", "guard", "site", "follow", "stop", "fetch", "down", "done")


@dataclass
class Run:
    """One run of a job."""

    job: str
    """Path of the job's file."""
    digest: str
    names: list[str]
    """Names of its jobs on the nodes."""
    max_usd: float | None
    ttl: float
    """Seconds from the beginning of `up` to the end."""
    results: str
    stage: str = "check"
    began: float = 0.0
    """When `up` began, in seconds since 1970; 0 before."""
    reason: str = ""
    """Why it was ended early; empty where the job came to its own end."""
    beside: float = 0.0
    """USD per hour of what is billed beside the nodes, as the user gave it."""
    failed: str = ""
    """What failed of site or of the job."""
    asked: dict[str, Any] = field(default_factory=dict)
    """Cloud, size, type and variables."""
    trace: str = ""
    """Where the command that did the last stage stands in the run's trace; empty where none is sent."""

    @property
    def until(self) -> float:
        """When it has to end."""
        return self.began + self.ttl

    def save(self, deployment: Path) -> None:
        """Write it down."""
        write_atomically(deployment / FILE, json.dumps({"schema": 1, **asdict(self)}, indent=2) + "\n")

    def enter(self, deployment: Path, stage: str) -> None:
        """Note what is to be done, before it is."""
        assert stage in STAGES
        self.stage = stage
        self.save(deployment)

    def spent(self, periods: Sequence[Period], now: float | None = None) -> float:
        """USD since it began, for nodes whose price is known and for what was given of the rest."""
        now = time.time() if now is None else now
        of_run = [
            Period(max(each.began, self.began), each.nodes, each.instance_type, each.hourly_usd, each.ended)
            for each in periods
            if (each.ended or now) > self.began
        ]
        beside = self.beside * max(0.0, now - self.began) / estimate.HOURS if self.began else 0.0
        return estimate.accrued(of_run, now)[0] + beside

    def end_reason(self, deployment: Deployment, now: float | None = None) -> str:
        """Why it has to end now, as a sentence; empty where it has not."""
        now = time.time() if now is None else now
        if now >= self.until:
            return f"its time is over ({time.strftime('%Y-%m-%d %H:%M', time.localtime(self.until))})"
        spent = self.spent(deployment.periods, now)
        if self.max_usd is not None and spent >= self.max_usd:
            return f"its money is spent ({spent:.2f} of {self.max_usd:.2f} USD)"
        return ""


def load(directory: Path) -> Run | None:
    """The run of a deployment, or None."""
    try:
        read = json.loads((directory / FILE).read_text())
        read.pop("schema")
        return Run(**read)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DeployError(
            f"The record of the run in {directory / FILE} cannot be read ({reason(error)}): remove it, and end the "
            f"deployment with `gaudi3-deploy down {directory.name}`."
        ) from None


def read_job(path: Path) -> tuple[str, list[str]]:
    """Digest of a job's file (variables of the role trainer, as for `site -e @FILE`), and the names of its jobs."""
    try:
        text = given_file.read_bytes(path)
        variables = yaml_file.read(text.decode())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(
            f"The job {path} cannot be read ({reason(error)}): give a YAML file of the role trainer's variables."
        ) from None
    if not isinstance(variables, dict):
        variables = {}
    listed = variables.get("trainer_jobs") or [{"name": variables.get("trainer_job_name")}]
    names = [str(each.get("name") or "") if isinstance(each, dict) else "" for each in _as_list(listed)]
    if not names or not all(names):
        raise UsageError(
            f"The job {path} has no name: set trainer_job_name in it, or give each of trainer_jobs a name, as "
            "examples/own_script/job.yml does."
        )
    return hashlib.sha256(text).hexdigest(), names


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def refuse_price(
    usd_per_hour: float | None, reason: str, max_usd: float | None, ttl: float, count: int, beside: float = 0.0
) -> None:
    """Raise UsageError where a run may cost more than it is allowed to; `usd_per_hour` is of all nodes."""
    if max_usd is None:
        return
    if usd_per_hour is None:
        raise UsageError(
            f"The price of the nodes is {reason.partition(';')[0]}, so that --max-usd guards nothing: give yours with "
            "--price."
        )
    usd_per_hour += beside
    most = usd_per_hour * ttl / 3600
    what = f"{count} node(s)" + " and what is beside them" * bool(beside)
    if most > max_usd:
        raise UsageError(
            f"{what} for {ttl / 3600:g} hours cost {most:.2f} USD, which is above --max-usd {max_usd:.2f}: "
            f"give a --ttl of at most {int(max_usd / usd_per_hour * 60)}m, a smaller --size, or more money."
        )
