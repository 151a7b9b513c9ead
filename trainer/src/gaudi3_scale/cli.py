"""The command `gaudi3-train`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gaudi3_scale.batch_warmup.command import batch_warmup
from gaudi3_scale.calling import call
from gaudi3_scale.config import dump_default, load
from gaudi3_scale.cost import commands
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.interruption import Interrupted, Notices
from gaudi3_scale.kubernetes import kubernetes_command
from gaudi3_scale.migrate_command import migrate
from gaudi3_scale.planning import plan_command as planning
from gaudi3_scale.recipe_cache import recipe_command as recipe_cache
from gaudi3_scale.recipe_cache.recipes_of_job import prepare as prepare_recipes
from gaudi3_scale.registry import registry_commands as registry
from gaudi3_scale.slurm import slurm_command
from gaudi3_scale.tuning import tune_command
from gaudi3_scale.version import VERSION

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Train language models on Intel Gaudi 3, CPU or CUDA; run under torchrun for more than one process.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gaudi3-train {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options that need no command."""
    if context.invoked_subcommand != "doctor":  # which reports what it finds
        from gaudi3_scale.hpu.torch_import import refuse_known_bad

        refuse_known_bad()


Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings over the file's, keys dotted.")
]
ConfigFile = Annotated[Path | None, typer.Option(help="YAML file; without it every setting has its default.")]


@app.command()
def fit(overrides: Overrides = None, config: ConfigFile = None) -> None:
    """Train, resuming from the newest checkpoint of the output directory; a finished job is left alone.

    Exit codes: 0 finished, 75 interrupted (started again, it continues), 2 bad configuration, 1 any other failure.
    """
    settings = load(config, overrides or ())
    from gaudi3_scale.hpu.environment import check_environment, check_runtime, lazy_mode, on_gaudi

    os.environ["PT_HPU_LAZY_MODE"] = lazy_mode(settings.train.mode, os.environ)  # read when torch is imported
    if os.environ.get("RANK", "0") == "0":
        runtime = check_runtime(os.environ) if on_gaudi(settings.device) else []
        for finding in [*check_environment(os.environ), *runtime]:
            typer.echo(f"environment: {finding.message}", err=True)
    leads = os.environ.get("LOCAL_RANK", "0") == "0"
    prepare_recipes(settings, os.environ, lambda said: typer.echo(f"recipe cache: {said}", err=True) if leads else None)
    notices = Notices(settings.interruption, leader=leads)
    notices.start()  # before the imports, which take seconds
    from gaudi3_scale.hpu.torch_import import import_torch_for

    import_torch_for(settings)  # only once the configuration is known to be good
    from gaudi3_scale.job.fit import fit as run

    run(settings, notices)


@app.command()
def prepare(overrides: Overrides = None, config: ConfigFile = None) -> None:
    """Tokenise and pack the job's data, which `fit` does too unless it is there; killed, it goes on where it was."""
    settings = load(config, overrides or ())
    from gaudi3_scale.data import Mixture, collect_all

    folder = settings.data.directory or settings.output_dir / "data"
    found = collect_all(settings.data, folder, typer.echo, sys.stdout.isatty(), settings.model.sequence_length)
    for corpus in found.parts if isinstance(found, Mixture) else [found]:
        typer.echo(
            f"{corpus.size:,} {corpus.unit}s of {corpus.documents:,} documents of {corpus.source} in {corpus.folder}: "
            f"{len(corpus.shards)} shard(s) of {corpus.dtype}"
        )


@app.command()
def tokenizer(
    to: Annotated[Path, typer.Option(help="The tokenizer.json to write.")],
    vocabulary: Annotated[int, typer.Option("--vocab-size", min=258, help="Number of tokens.")],
    overrides: Overrides = None,
    config: ConfigFile = None,
) -> None:
    """Train a byte-level BPE tokenizer on the job's data source."""
    settings = load(config, overrides or ())
    from gaudi3_scale.data.prepare import single
    from gaudi3_scale.data.records import texts_of
    from gaudi3_scale.data.sources import START, open_source
    from gaudi3_scale.data.tokenizer import train_tokenizer

    each = single(settings.data) or [settings.data]
    sources = [(open_source(config, typer.echo), config) for config in each]
    pieces = ((piece.text, config) for source, config in sources for piece in source.pieces(START))
    made = train_tokenizer((text for found, config in pieces for text in texts_of(found, config)), vocabulary)
    to.parent.mkdir(parents=True, exist_ok=True)
    made.save(str(to))
    typer.echo(f"{to}: {made.get_vocab_size():,} tokens; set data.tokenizer to it")


@app.command()
def export(
    to: Annotated[Path, typer.Option(help="The folder to make.")],
    overrides: Overrides = None,
    config: ConfigFile = None,
    step: Annotated[int | None, typer.Option(help="Of which step; without it, the newest whole checkpoint.")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Add LoRA's adapters to the weights.")] = False,
    bfloat16: Annotated[bool, typer.Option("--bfloat16", help="Halve the weights' width.")] = False,
) -> None:
    """Write a checkpoint's model and tokenizer as transformers reads them: config.json and safetensors.

    Where the checkpoint is spread over nodes, run it on all of them under the launcher: the first one writes.
    """
    settings = load(config, overrides or ())
    from gaudi3_scale.job.export import export as write

    written = write(settings, to, step, merge, "bfloat16" if bfloat16 else "float32")
    if written is None:  # the first process says it
        return
    done, tokens = written
    typer.echo(f"step {done} in {to}" + ("" if tokens else ", without a tokenizer: its data is not here any more"))


@app.command()
def register(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The job's output_dir.")],
    name: Annotated[str, typer.Option(help="Of the model in the registry.")],
    overrides: Overrides = None,
    config: ConfigFile = None,
    step: Annotated[int | None, typer.Option(help="Of which step; without it, the newest whole checkpoint.")] = None,
    exported: Annotated[
        Path | None, typer.Option("--export", help="An export of this job; without it one is made, adapters merged.")
    ] = None,
    bfloat16: Annotated[bool, typer.Option("--bfloat16", help="Halve the weights' width.")] = False,
    commit: Annotated[str | None, typer.Option(help="Of the code that trained it, where the job does not say.")] = None,
    description: Annotated[str | None, typer.Option(help="Shown in MLflow.")] = None,
    uri: Annotated[str | None, typer.Option(help="MLflow's tracking server; without it MLFLOW_TRACKING_URI.")] = None,
) -> None:
    """Register a job's model in MLflow with where it comes from, as the candidate.

    A configuration is needed only where the checkpoint lies in `checkpoint.target`. Where a checkpoint is spread over
    nodes, run it on all of them under the launcher.
    """
    settings = load(config, [*(overrides or ()), f"output_dir={json.dumps(str(folder))}"])
    from gaudi3_scale.job.register import ToRegister
    from gaudi3_scale.job.register import register as write
    from gaudi3_scale.registry.server import RegistryServer

    server = RegistryServer(uri or settings.tracking.mlflow_uri)
    wanted = ToRegister(folder, name, step, exported, "bfloat16" if bfloat16 else "float32", commit, description)
    done = write(settings, wanted, server, lambda text: typer.echo(text, err=True))
    if done is None:  # the first process says it
        return
    if done.is_new:
        typer.echo(f"{done.version} is step {done.step}, manifest {done.version.digest[:12]}: the candidate now")
    else:
        typer.echo(f"{done.version} is this very model (step {done.step}): nothing to do")


@app.command("verify-resume")
def verify_resume(
    overrides: Overrides = None,
    config: ConfigFile = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps before the kill, and after it.")] = 20,
    world_sizes: Annotated[
        str, typer.Option(help="Processes before the kill and after it, as 2,1; more after it are tried one by one.")
    ] = "1",
) -> None:
    """Kill this job half way, resume it, and compare it with an undisturbed run: losses and weights, bit for bit.

    Exit codes: 0 it is the same, 1 it is not.
    """
    settings = load(config, overrides or ())
    sizes = [int(size) if size.isdigit() else 0 for size in world_sizes.split(",")]
    if min(sizes) < 1:
        raise ConfigError(f"--world-sizes is {world_sizes!r}: give numbers of processes from 1 on, as 2,1.")
    from gaudi3_scale.job.verify_resume import verify

    if not verify(settings, steps, sizes, typer.echo):
        raise typer.Exit(1)


@app.command()
def checkpoints(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A job's output_dir, on any of its nodes.")],
) -> None:
    """List the checkpoints of this node, each read whole and compared with its manifest.

    Exit codes: 0 all are whole, 1 one is damaged.
    """
    from gaudi3_scale.checkpoint.listing import listed

    found = list(listed(directory))
    for one in found:
        typer.echo(f"step {one.step:>9,}  {one.size / 2**20:>12,.1f} MiB  {one.condition}")
    if not all(one.good for one in found):
        raise typer.Exit(1)


@app.command("config")
def show_config(
    schema: Annotated[
        Path | None,
        typer.Option(help="Also write the JSON schema of a job file here; the first line then names it to editors."),
    ] = None,
) -> None:
    """Print the default configuration, each key with its meaning."""
    if schema is not None:
        from gaudi3_scale.config.json_schema import job_schema
        from gaudi3_scale.files import write_atomically

        try:
            write_atomically(schema, json.dumps(job_schema(), indent=2) + "\n", durable=False)
        except OSError as error:
            raise TrainerError(
                f"The schema {schema} cannot be written ({error.strerror}): give another file with --schema."
            ) from None
        typer.echo(f"# yaml-language-server: $schema={schema}")
    typer.echo(dump_default(), nl=False)


@app.command()
def environment(
    markdown: Annotated[bool, typer.Option("--markdown", help="Only the table, as Markdown.")] = False,
) -> None:
    """List the variables that Gaudi's PyTorch bridge and runtime read, and tell what is set that nothing reads.

    Where there is a Gaudi, it also tells what the runtime lacks. Exit codes: 0 nothing is wrong, 1 something is.
    """
    from gaudi3_scale.hpu.environment import check_environment, check_runtime, on_gaudi, table

    typer.echo(table(), nl=False)
    findings = [*check_environment(os.environ), *(check_runtime(os.environ) if on_gaudi() else [])]
    if markdown:
        return
    for finding in findings:
        typer.echo(finding.message, err=True)
    if findings:
        raise typer.Exit(1)


@app.command()
def doctor(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the whole report here, to read or send on.")
    ] = None,
    cards: Annotated[bool, typer.Option("--cards", help="Compute on the cards too; they must be free.")] = False,
    consent: Annotated[
        list[str] | None,
        typer.Option(
            help="Try this too, with --cards: kill-holder, lost-peer, part-of-node, translated-iommu; may be repeated."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions and small tensors, as a rehearsal.")] = False,
    user: Annotated[str, typer.Option(help="As root: who runs jobs; the cards are tried as this user.")] = "",
    python: Annotated[Path | None, typer.Option(help="The Python that has torch; without it, this one.")] = None,
    environment_file: Annotated[
        list[Path] | None, typer.Option(help="A file of variables that the job's unit reads; may be given again.")
    ] = None,
) -> None:
    """Examine this node and report what is odd, without names, addresses or secrets; ask as root to see all.

    Nothing on the node is changed. Exit codes: 0 whatever is found, 2 a wrong option.
    """
    import gaudi3_doctor as doctor

    unknown = [name for name in consent or () if name not in doctor.CONSENTS]
    if unknown:
        raise ConfigError(f"--consent is {unknown[0]!r}: give {', '.join(doctor.CONSENTS)}.")
    if consent and not cards:
        raise ConfigError("--consent is for what is tried on the cards: give --cards too.")
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise ConfigError(f"--json is {json_file}, whose folder does not exist: make it, or give another file.")
    if python is not None and shutil.which(python) is None:
        raise ConfigError(f"--python is {python}, which is no program: give the path of the Python that has torch.")
    options = doctor.Options(
        cards=cards,
        consent=tuple(consent or ()),
        quick=quick,
        user=user,
        pythons=(str(python or sys.executable),),
        environment_files=tuple(map(str, environment_file or ())),
    )
    report = doctor.examine(options, log=lambda title: typer.echo(f"... {title}", err=True))
    typer.echo(doctor.text(report), nl=False)
    if json_file is not None:
        doctor.write(report, str(json_file))
        typer.echo(f"\nThe whole report: {json_file} ({json_file.stat().st_size / 1000:,.0f} kB)")


@app.command()
def goodput(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A job's output_dir, on any of its nodes.")],
    png: Annotated[Path | None, typer.Option(help="Write the bar as a picture too.")] = None,
    what_if: Annotated[
        bool,
        typer.Option("--what-if", help="Show what the job would have taken without each cause, in time and money."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show where the job's wall time went, over all its restarts: the parts sum to the whole."""
    from gaudi3_scale.cost import what_if as causes
    from gaudi3_scale.cost import what_if_show
    from gaudi3_scale.throughput import goodput as ledger
    from gaudi3_scale.throughput import show

    found, title = ledger.of_directory(directory), directory.resolve().name
    if what_if:
        without = causes.of_directory(directory)
        if as_json:
            typer.echo(json.dumps(without.record(), indent=2))
        else:
            what_if_show.show(without, title)
    elif as_json:
        typer.echo(json.dumps(found.status(), indent=2))
    else:
        show.show(found, title)
    if png is not None:
        show.draw(found, title, png)


app.add_typer(recipe_cache.app, name="recipe-cache")
app.command("batch-warmup")(batch_warmup)
app.command("cost")(commands.cost)
app.command("chargeback")(commands.chargeback)
app.command("migrate")(migrate)
app.command("plan")(planning.plan)
app.command("kubernetes")(kubernetes_command.kubernetes)
app.command("slurm")(slurm_command.slurm)
app.command("tune")(tune_command.tune)
app.add_typer(registry.app, name="registry")


def main() -> NoReturn:
    """Run the command line; what a user can act on is said in one sentence."""
    try:
        code = call(app, "gaudi3-train")
    except TrainerError as error:
        # However many processes find it: of each node only the first one speaks about what is the same for all.
        if not isinstance(error, ConfigError | Interrupted) or os.environ.get("LOCAL_RANK", "0") == "0":
            with contextlib.suppress(OSError):
                print(f"gaudi3-train: {error}", file=sys.stderr)
        code = error.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception:  # the process must end below, not in the interpreter's own way
        with contextlib.suppress(OSError):
            traceback.print_exc()
        code = 1
    # At once: the destructors of a process group may wait for a peer that is gone, or abort.
    from gaudi3_scale.hpu.acquire import give_up

    give_up()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # on a full disk the exit code is all that is left to say
            stream.flush()
    os._exit(code)
