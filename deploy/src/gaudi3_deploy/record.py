"""What is known of a deployment between two commands: a directory which a kill at any instant leaves readable.

    deployments/NAME/deployment.json          cloud, phase, and when how many nodes began or ceased to cost
    deployments/NAME/variables.tfvars.json    what terraform is given, and what it is given again
    deployments/NAME/environment.json         TF_VAR_... that were set, for a shell in which they are not
    deployments/NAME/outputs.json             terraform's outputs as they were last read
    deployments/NAME/inventory/               for `ansible-playbook -i`
    deployments/NAME/logs/                    everything that terraform and ansible-playbook said

The nodes themselves are in terraform's state (a workspace of the deployment's name), not here.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason

#: As terraform/modules/cluster has it: nodes are called NAME-01, and host names are short.
NAME = re.compile(r"[a-z]([a-z0-9-]{0,22}[a-z0-9])?")
ENVIRONMENT = "environment.json"
PHASES = ("new", "applying", "up", "site", "ready", "destroying", "stored", "down")
"""`stored`: taken down but for the checkpoints' storage."""
#: Phases in which nothing but the checkpoints' storage can be this deployment's.
BEFORE = ("new", "stored", "down")


@dataclass
class Period:
    """Nodes of a type from one time to another; the last one has no end."""

    began: float
    nodes: int
    instance_type: str
    hourly_usd: float | None
    """Price of one node, as it was estimated then; None = unknown."""
    ended: float | None = None
    given: bool = False
    """Whether the price was the user's own."""


#: The default of each root module's variable `region`.
REGIONS = {"aws": "us-west-2", "azure": "westus3", "gcp": "us-central1", "ibm": "us-east"}


@dataclass
class Deployment:
    """One deployment's record."""

    name: str
    directory: Path
    cloud: str
    phase: str = "new"
    periods: list[Period] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    entered: float = 0.0
    """When the phase began, in seconds since 1970; 0 before the first."""
    environment: dict[str, str] = field(default_factory=dict)
    """What terraform was given by TF_VAR_NAME, and is given again where that is not set."""
    since: float = 0.0
    """When the first `up` of what there is began, in seconds since 1970; 0 where nothing was made, or long ago."""

    @property
    def region(self) -> str:
        """The region, or the default one of the root module; empty where there are none."""
        given = self.variables.get("region") or self.environment.get("TF_VAR_region")
        return str(given or REGIONS.get(self.cloud, ""))

    @property
    def variables_file(self) -> Path:
        """For terraform's -var-file."""
        return self.directory / "variables.tfvars.json"

    @property
    def inventory(self) -> Path:
        """For ansible-playbook's -i."""
        return self.directory / "inventory"

    @property
    def outputs(self) -> Path:
        """Terraform's outputs as they were last read."""
        return self.directory / "outputs.json"

    @property
    def logs(self) -> Path:
        """Where the commands' output goes."""
        return self.directory / "logs"

    def save(self) -> None:
        """Write it; the variables first, as the phase relies on them."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self.variables_file, json.dumps(self.variables, indent=2) + "\n")
        write_atomically(self.directory / ENVIRONMENT, json.dumps(self.environment, indent=2) + "\n")
        about = {
            "schema": 1,
            "cloud": self.cloud,
            "phase": self.phase,
            "entered": self.entered,
            "since": self.since,
            "periods": [asdict(period) for period in self.periods],
        }
        write_atomically(self.directory / "deployment.json", json.dumps(about, indent=2) + "\n")

    def enter(self, phase: str) -> None:
        """Note what is being done, before it is."""
        assert phase in PHASES
        before, self.phase, self.entered = self.phase, phase, time.time()
        if phase == "applying" and before in BEFORE:
            self.since = self.entered
        self.save()

    @property
    def given_price(self) -> float | None:
        """The user's own price of the type that is wanted, if it was the last one used."""
        last = self.periods[-1] if self.periods else None
        same = last is not None and last.instance_type == self.variables.get("instance_type")
        return last.hourly_usd if last is not None and same and last.given else None

    def count(
        self,
        nodes: int,
        instance_type: str,
        hourly_usd: float | None,
        now: float | None = None,
        given: bool = False,
    ) -> None:
        """From now on this many nodes cost money."""
        now = time.time() if now is None else now
        current = self.periods[-1] if self.periods and self.periods[-1].ended is None else None
        if current is not None:
            if (current.nodes, current.instance_type, current.hourly_usd) == (nodes, instance_type, hourly_usd):
                return
            current.ended = now
        if nodes:
            self.periods.append(Period(now, nodes, instance_type, hourly_usd, given=given))
        self.save()

    @property
    def nodes(self) -> int:
        """How many cost money now."""
        current = self.periods[-1] if self.periods else None
        return current.nodes if current is not None and current.ended is None else 0


def load(root: Path, name: str) -> Deployment | None:
    """The record of a deployment, or None."""
    directory = root / check_name(name)
    try:
        about = json.loads((directory / "deployment.json").read_text())
        variables = json.loads((directory / "variables.tfvars.json").read_text())
        periods = [Period(**period) for period in about["periods"]]
        entered, since = float(about["entered"]), float(about["since"])
        given = json.loads((directory / ENVIRONMENT).read_text())
        return Deployment(name, directory, about["cloud"], about["phase"], periods, variables, entered, given, since)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeployError(
            f"The record of deployment {name!r} in {directory} cannot be read ({reason(error)}): restore "
            "deployment.json and variables.tfvars.json, or work on it with terraform directly (its workspace has the "
            "deployment's name)."
        ) from None


def every(root: Path) -> Iterator[Deployment]:
    """All that there are, by name."""
    for path in sorted(root.glob("*/deployment.json")):
        found = load(root, path.parent.name)
        if found is not None:
            yield found


def check_name(name: str) -> str:
    """A name becomes part of resources' names in the cloud."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"The name {name!r} can't be used: give 1 to 24 lower-case letters, digits and dashes, a letter first and "
            "no dash last."
        )
    return name


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file's content, so that a kill or a power cut leaves the old or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
