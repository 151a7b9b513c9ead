"""replace: another machine in a node's place, made beside it and taken only when it is healthy."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gaudi3_deploy import declared, jobs, nodes, replacement, site, ssh
from gaudi3_deploy.app import Context, Name, PriceOption, Yes, app, confirm
from gaudi3_deploy.commands.provision import bring_up
from gaudi3_deploy.commands.reach import MINUTES, made
from gaudi3_deploy.console import Teller
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.plan import Plan
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.replacement import Replacement
from gaudi3_deploy.requested import variable
from gaudi3_deploy.terraform import Terraform


@app.command()
def replace(
    context: typer.Context,
    name: Name,
    node: Annotated[str | None, typer.Argument(help="The node to be replaced.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All nodes, one after the other; the first one last.")] = False,
    image: Annotated[str | None, typer.Option(help="VARIABLE=VALUE of the image that new machines get.")] = None,
    health: Annotated[
        str | None, typer.Option(help="A command here; NODE in it is the node. 0: it is healthy.")
    ] = None,
    job: Annotated[
        list[str] | None, typer.Option(help="File of a job that is to go on afterwards; repeatable.")
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="End the node first, then make the new one.")] = False,
    price: PriceOption = None,
    yes: Yes = False,
) -> None:
    """Put a new machine in a node's place: make, check, drain, swap, destroy. Cut off and run again, it goes on."""
    settings: Context = context.obj
    if (node is None) == (not every):
        raise UsageError("Say which node is to be replaced, or --all.")
    teller = Teller(settings.console)
    with settings.alone(name, "replace"):
        deployment = settings.find(name)
        outputs = made(deployment)
        names = [each.name for each in nodes.workers(outputs)]
        head = nodes.head(outputs)
        todo = sorted(names, key=lambda each: each == head) if every else [str(node)]
        directory = deployment.directory
        if every:
            todo = replacement.left(directory, image) or todo
        before = _take_image(settings, deployment, image) if image is not None else {}
        under_way = replacement.load(directory)
        if under_way is not None:
            todo = [under_way.node, *(each for each in todo if each != under_way.node)]
        else:
            (replacement.refuse if in_place else replacement.begin)(deployment, outputs, todo[0])
        if not yes and under_way is None:
            how = "ends it before the new one is made" if in_place else "one node more is paid for meanwhile"
            confirm(f"Replace {', '.join(todo)} ({how})?")
        steps = Steps(settings, deployment, teller, price, health, job or [])
        for number, each in enumerate(todo):
            if every:
                replacement.note_left(directory, todo[number:], image)
            if in_place:
                steps.in_place(each)
                continue
            found = replacement.load(directory)
            if found is None:
                found = replacement.begin(deployment, made(deployment), each)
                found.before = before
            steps.go_on(found)
        replacement.note_left(directory, [], image)


def _take_image(settings: Context, deployment: Deployment, image: str) -> dict[str, Any]:
    """Have new machines made of it; what the variable was before."""
    name, value = variable(image)
    known = declared.names(settings.terraform_dir / deployment.cloud)
    if name not in known:
        likely = ", ".join(sorted(each for each in known if "image" in each)) or "none"
        raise UsageError(
            f"terraform/{deployment.cloud} has no variable {name!r}: give VARIABLE=VALUE of the image ({likely})."
        )
    before = deployment.variables.get(name)
    deployment.variables[name] = value
    return {name: before}


@dataclass
class Steps:
    """Of one node's replacement."""

    settings: Context
    deployment: Deployment
    teller: Teller
    price: float | None
    health: str | None
    jobs: list[str]

    def go_on(self, found: Replacement) -> None:
        """Do what is left of it."""
        directory = self.deployment.directory
        found.save(directory)
        for stage in replacement.STAGES[replacement.STAGES.index(found.stage) :]:
            found.enter(directory, stage)
            self.teller.log(f"replace {found.node}: {stage}")
            getattr(self, stage)(found)
        (directory / replacement.FILE).unlink()
        self.teller.log(f"{found.node} is another machine now")

    def grow(self, found: Replacement) -> None:
        """Make the new machine."""
        self._resize(found.size + found.cards)

    def gate(self, found: Replacement) -> None:
        """Set it up and look whether it is healthy; without a green gate the old one stays."""
        outputs = made(self.deployment)
        try:
            ssh.wait(self.deployment, outputs, self.teller.log, 15 * MINUTES, [found.new])
            code = self._play(["--limit", found.new, "--skip-tags", "train,verify"])
            if code:
                raise DeployError(f"site.yml failed on it (exit code {code})")
            if self.health is not None:
                command = [each.replace("NODE", found.new) for each in shlex.split(self.health)]
                code = subprocess.run(command, check=False).returncode
                if code:
                    raise DeployError(f"the health command failed (exit code {code})")
        except DeployError as error:
            self.teller.log(f"{found.new} is not healthy and goes: {error}")
            given = {**self.deployment.variables, **found.before}
            self.deployment.variables = {name: value for name, value in given.items() if value is not None}
            self._resize(found.size, shrink=found)
            (self.deployment.directory / replacement.FILE).unlink()
            raise DeployError(f"{found.node} was not replaced, and stays as it is: {error}.") from None

    def drain(self, found: Replacement) -> None:
        """Have the jobs save and end."""
        jobs.drain(self.deployment, self.teller.log)

    def swap(self, found: Replacement) -> None:
        """Let both change their names."""
        terraform = self._terraform()
        if not replacement.is_swapped(found, terraform.state()):
            terraform.swap(found.node, found.new)

    def shrink(self, found: Replacement) -> None:
        """Destroy the old machine."""
        self._resize(found.size, shrink=found)

    def start(self, found: Replacement) -> None:
        """Set up all nodes again and resume the jobs."""
        ssh.wait(self.deployment, made(self.deployment), self.teller.log, 15 * MINUTES)
        given = [part for job in self.jobs for part in ("-e", f"@{job}")]
        self.deployment.enter("site")
        code = self._play([*given, *(["-e", "trainer_state=started"] if given else [])])
        if code:
            raise DeployError(f"site.yml failed (exit code {code}): mend it and run the same command again.")
        self.deployment.enter("ready")

    def in_place(self, node: str) -> None:
        """Drain the node's jobs, then destroy and recreate the node."""
        replacement.refuse(self.deployment, made(self.deployment), node)
        found = Replacement(node, node, int(self.deployment.variables["cluster_size"]), 0, "")
        self.drain(found)
        terraform = self._terraform()
        machines = [each.address for each in terraform.state().resources if each.address.endswith(f'["{node}"]')]
        planned = terraform.plan(self.deployment.variables, replace=machines)
        try:
            replacement.refuse_more(found, planned.delete, [each for each in planned.replace if each not in machines])
            self.deployment.enter("applying")
            terraform.apply(planned)
        finally:
            planned.discard()
            self.teller.stop()
        self._take_note(terraform)
        self.start(found)

    def _resize(self, size: int, shrink: Replacement | None = None) -> None:
        self.deployment.variables["cluster_size"] = size
        if shrink is None:
            bring_up(self.settings, self.deployment, self.teller, self.price, yes=True)
            return
        terraform = self._terraform()
        old = [each.address for each in terraform.state().resources if each.address.endswith(f'["{shrink.new}"]')]
        if old and self.deployment.cloud in replacement.UNIQUE_NAMES:
            # The old machine has to go before the new one can take its name; all is looked at before it goes.
            self._shrink_plan(shrink, terraform).discard()
            self._apply(terraform, self._shrink_plan(shrink, terraform, old))
        self._apply(terraform, self._shrink_plan(shrink, terraform))
        self._take_note(terraform)

    def _shrink_plan(self, found: Replacement, terraform: Terraform, only: Sequence[str] = ()) -> Plan:
        """The plan that ends the old machine. Raises DeployError where it would end more."""
        planned = terraform.plan(self.deployment.variables, only=only)
        try:
            self._refuse_more(found, terraform, planned)
        except BaseException:
            planned.discard()
            raise
        return planned

    def _apply(self, terraform: Terraform, planned: Plan) -> None:
        try:
            self.deployment.enter("applying")
            if planned.changed:
                terraform.apply(planned)
        finally:
            planned.discard()
            self.teller.stop()

    def _refuse_more(self, found: Replacement, terraform: Terraform, planned: Plan) -> None:
        """Where more would be ended than the old machine, both get their names back, and nothing is ended."""
        try:
            replacement.refuse_more(found, planned.delete, planned.replace)
        except DeployError as error:
            if replacement.is_swapped(found, terraform.state()):
                terraform.swap(found.node, found.new)
            (self.deployment.directory / replacement.FILE).unlink(missing_ok=True)
            name, size = self.deployment.name, found.size + found.cards
            raise DeployError(
                f"{error} {found.node} is as it was, and {found.new} one node more: keep it with `gaudi3-deploy up "
                f"{name} --size {size}`, or end it with `gaudi3-deploy up {name} --size {found.size} --allow-replace`."
            ) from None

    def _take_note(self, terraform: Terraform) -> None:
        outputs = terraform.outputs()
        site.write_inventory(self.deployment, outputs)
        last = self.deployment.periods[-1] if self.deployment.periods else None
        price, own = (last.hourly_usd, last.given) if last else (None, False)
        kind = str(self.deployment.variables.get("instance_type", ""))
        self.deployment.count(len(nodes.workers(outputs)), kind, price, given=own)
        self.deployment.enter("up")

    def _terraform(self) -> Terraform:
        return self.settings.open(self.deployment, self.teller)

    def _play(self, arguments: list[str]) -> Any:
        return site.run_site(self.deployment, self.settings.collection, arguments)
