"""run: from nothing to a job's results to nothing, by stages of which each is on record."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_deploy import (
    declared,
    duration,
    estimate,
    jobs,
    nodes,
    record,
    results,
    runs,
    site,
    ssh,
    traces,
    watchdog_timer,
)
from gaudi3_deploy.app import (
    Asked,
    Beside,
    Context,
    Json,
    PriceOption,
    Size,
    SshKey,
    Type,
    Var,
    VarFile,
    Yes,
    app,
    confirm,
    print_json,
    talker,
)
from gaudi3_deploy.commands.check import findings, require, show
from gaudi3_deploy.commands.down import take_down
from gaudi3_deploy.commands.provision import bring_up
from gaudi3_deploy.commands.reach import MINUTES, made
from gaudi3_deploy.console import Teller
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment, check_name
from gaudi3_deploy.runs import Run

HOSTS = "onprem"
LOOK_EVERY = 5.0


@app.command()
def run(
    context: typer.Context,
    job: Annotated[Path, typer.Argument(help="YAML file of the role trainer's variables: trainer_job_name, ...")],
    on: Annotated[str | None, typer.Option(help="ibm, aws, or hosts for machines that are your own.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the deployment [default: the file's]")] = None,
    size: Size = None,
    type_: Type = None,
    var: Var = None,
    var_file: VarFile = None,
    ssh_key: SshKey = None,
    price: PriceOption = None,
    beside: Beside = None,
    max_usd: Annotated[
        float | None, typer.Option(min=0, help="Refuse, and end, what costs more; nodes alone without --price-beside.")
    ] = None,
    ttl: Annotated[str, typer.Option(help="End it after this time: 90m, 12h, 2d.")] = "12h",
    to: Annotated[Path, typer.Option("--results", help="Folder for what the jobs write.")] = Path("results"),
    keep: Annotated[bool, typer.Option("--keep", help="Stop, and keep the machines, where site or job fails.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Check, up, wait, site, follow, fetch, down. Run again with the same name, it goes on where it was cut off."""
    settings: Context = context.obj
    teller = talker(settings, as_json)
    digest, names = runs.read_job(job)
    lasts = duration.seconds(ttl)
    name = check_name(name or re.sub(r"[^a-z0-9-]+", "-", job.stem.lower()).strip("-"))
    cloud = HOSTS if on == "hosts" else on
    asked = Asked(cloud, size, type_, var, var_file, ssh_key)
    under_way = runs.load(settings.folder(name) / name)
    if under_way is None or under_way.stage == "done":
        settings.refuse(name, asked)
    with settings.alone(name, "run"):
        folder = settings.folder(name) / name
        found = runs.load(folder)
        if found is None or found.stage == "done":
            found = Run(str(job.resolve()), digest, names, max_usd, lasts, str(to.resolve()))
            found.beside = beside or 0.0
            found.asked = {
                key: str(value) if isinstance(value, Path) else value for key, value in asdict(asked).items()
            }
        else:
            _refuse_another(found, digest, job)
            teller.log(f"run {name} goes on at stage {found.stage}")
        found.trace = traces.go_on_with(found.trace)
        Stages(settings, name, found, teller, asked, price, yes, keep).go_on()
        if as_json:
            print_json({"deployment": name, **asdict(found), "usd": found.spent(settings.find(name).periods)})
    if found.failed:
        raise DeployError(f"The run has ended, and {found.failed}.")
    teller.log(f"run {name} is done" + (f", cut short: {found.reason}" if found.reason else ""))


def _refuse_another(found: Run, digest: str, job: Path) -> None:
    if found.digest != digest:
        raise UsageError(
            f"{job} is not what the run at stage {found.stage} was begun with ({found.job}): end that one first with "
            "`gaudi3-deploy down`, or take another --name."
        )


@dataclass
class Stages:
    """One run, stage by stage."""

    settings: Context
    name: str
    run: Run
    teller: Teller
    asked: Asked
    price: float | None
    yes: bool
    keep: bool

    @property
    def folder(self) -> Path:
        """Where its records are."""
        return self.settings.folder(self.name) / self.name

    def go_on(self) -> None:
        """Do what is left."""
        while self.run.stage != "done":
            self._end_what_is_over()
            with traces.span(self.run.stage):
                following = getattr(self, self.run.stage)()
            self.run.enter(self.folder, following)

    def _end_what_is_over(self) -> None:
        """After a long time without us, no machine is made or set up any more."""
        deployment = record.load(self.folder.parent, self.name)
        if self.run.stage not in ("up", "wait", "guard", "site") or not self.run.began or deployment is None:
            return
        self.run.reason = self.run.end_reason(deployment)
        if self.run.reason:
            self.run.enter(self.folder, "stop" if self.run.stage == "site" else "down")

    def check(self) -> str:
        """Refuse what would fail, or cost too much."""
        deployment = self.settings.want(self.name, self.asked)
        if deployment.phase not in ("new", "down", "stored"):
            self.teller.log(f"deployment {self.name} is there already ({deployment.phase})")
        if deployment.variables.get("autoscaling"):
            raise UsageError(
                "An autoscaling group replaces each node that powers itself off, so that nothing would end this run "
                "without you: leave autoscaling out."
            )
        found = findings(self.settings, deployment, self.price)
        show(found, self.teller)
        require(found)
        self._limit(deployment)
        if deployment.cloud != HOSTS and not self.yes:
            most = f" for at most {self.run.max_usd:.2f} USD" if self.run.max_usd is not None else ""
            confirm(f"Rent these machines{most}, and give them back after {duration.text(self.run.ttl)} at the latest?")
        return "up"

    def _limit(self, deployment: Deployment) -> None:
        if deployment.cloud == HOSTS:
            return
        kind = self.settings.kind(deployment)
        price = estimate.price_of(kind, deployment, self.price)
        count = estimate.node_count(kind, deployment.variables)
        total = None if price.usd_per_hour is None else price.usd_per_hour * count
        runs.refuse_price(total, price.description, self.run.max_usd, self.run.ttl, count, self.run.beside)
        if self.run.max_usd is not None and not self.run.beside:
            self.teller.log(
                "--max-usd counts the nodes alone, and not the monitoring machine, disks, gateway and traffic: give "
                "the price of these per hour with --price-beside"
            )

    def up(self) -> str:
        """Make the nodes."""
        if not self.run.began:
            self.run.began = time.time()
            self.run.save(self.folder)
        asked = self.asked if self.asked.cloud else self._as_before()
        deployment = self.settings.want(self.name, asked)
        known = declared.names(self.settings.terraform_dir / deployment.cloud)
        fresh = deployment.phase in record.BEFORE  # machines that are there do not get it any more
        if fresh and watchdog_timer.VARIABLE in known and watchdog_timer.VARIABLE not in deployment.variables:
            deployment.variables[watchdog_timer.VARIABLE] = watchdog_timer.span(self.run.ttl)
        bring_up(self.settings, deployment, self.teller, self.price, yes=True)
        return "wait"

    def _as_before(self) -> Asked:
        paths = {each: Path(self.run.asked[each]) for each in ("var_file", "ssh_key") if self.run.asked.get(each)}
        return Asked(**{**self.run.asked, **paths})

    def wait(self) -> str:
        """Until ssh is let in."""
        deployment = self.settings.find(self.name)
        ssh.wait(deployment, made(deployment), self.teller.log, 15 * MINUTES)
        return "guard"

    def guard(self) -> str:
        """Give the nodes an end of their own."""
        deployment = self.settings.find(self.name)
        if deployment.cloud != HOSTS:
            watchdog_timer.install(deployment, self.run.until, self.teller.log)
        return "site"

    def site(self) -> str:
        """Set the nodes up and start the job."""
        deployment = self.settings.find(self.name)
        deployment.enter("site")
        arguments = ["-e", f"@{self.run.job}", "-e", "trainer_state=started"]
        code = self._play(deployment, arguments)
        if code:
            return self._ended(code, f"site.yml failed (exit code {code})", "down")
        deployment.enter("ready")
        return "follow"

    def follow(self) -> str:
        """Wait for the job, and show how far it is."""
        deployment = self.settings.find(self.name)
        arguments = ["-e", f"@{self.run.job}", "-e", "trainer_state=finished", "--tags", "train"]
        code = self._play(deployment, arguments)
        return self._ended(code, f"the job failed (exit code {code})", "fetch") if code else "fetch"

    def _ended(self, code: int, failed: str, following: str) -> str:
        if self.run.reason:
            return "stop"
        if code in (130, -signal.SIGINT):
            raise KeyboardInterrupt
        if self.keep:
            raise DeployError(
                f"{failed[:1].upper()}{failed[1:]}, and the machines are kept: mend it and run this again, or end them "
                f"with `gaudi3-deploy down {self.name}`."
            )
        self.run.failed = failed
        return following

    def stop(self) -> str:
        """Have the job save, as an interruption does."""
        deployment = self.settings.find(self.name)
        self.teller.log(f"the job is stopped and saves: {self.run.reason}")
        try:
            jobs.drain(deployment, self.teller.log)
        except DeployError as error:
            self.teller.log(f"warning: {error} Its last checkpoint is the one before.")
        return "fetch"

    def fetch(self) -> str:
        """Bring what the job has written."""
        deployment = self.settings.find(self.name)
        outputs = made(deployment)
        for each in self.run.names:
            try:
                results.fetch(deployment, nodes.head(outputs), each, Path(self.run.results), self.teller.log)
            except DeployError as error:
                if not self.run.reason and not self.run.failed:
                    raise
                self.teller.log(f"warning: {error}")
        return "down"

    def down(self) -> str:
        """Give the machines back."""
        take_down(self.settings, self.settings.find(self.name), self.teller, yes=True)
        return "done"

    def _play(self, deployment: Deployment, arguments: list[str]) -> int:
        """site.yml, which is interrupted where the run's money or time is spent; the job goes on meanwhile."""
        process = site.start(deployment, self.settings.collection, arguments)
        try:
            while process.poll() is None:
                self.run.reason = self.run.reason or self.run.end_reason(deployment)
                if self.run.reason:
                    self.run.save(self.folder)
                    process.send_signal(signal.SIGINT)
                    process.wait(timeout=60)
                    break
                time.sleep(min(LOOK_EVERY, max(0.1, self.run.until - time.time())))
        except subprocess.TimeoutExpired:
            process.kill()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        return process.wait()
