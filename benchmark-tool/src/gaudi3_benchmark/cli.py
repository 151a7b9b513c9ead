"""The command `gaudi3-benchmark`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import yaml

from gaudi3_scale import yaml_file
from gaudi3_scale.calling import call, offer_version
from gaudi3_scale.errors import ConfigError, TrainerError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure training steps of published model shapes on one device, and report, compare and sign the results.",
)


class Mode(StrEnum):
    """As `train.mode`."""

    auto = "auto"
    eager = "eager"
    compile = "compile"
    lazy = "lazy"


class Recompute(StrEnum):
    """As `memory.activation_checkpointing`, without a budget."""

    none = "none"
    selective = "selective"
    full = "full"


class Format(StrEnum):
    """Of what is printed."""

    text = "text"
    json = "json"


ResultFile = Annotated[Path, typer.Argument(metavar="RESULT", help="A file that run has written.")]


offer_version(app, "gaudi3-benchmark")


@app.command()
def run(
    to: Annotated[Path, typer.Option(help="The result file to write, JSON.")],
    shape: Annotated[list[str] | None, typer.Option(help="A shape that `shapes` lists; may be repeated.")] = None,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Samples of a step; may be repeated; 1 without it.")
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(help="32-true, bf16-mixed or bf16-true; may be repeated; bf16-mixed without it."),
    ] = None,
    size: Annotated[int | None, typer.Option(min=8, help="Tokens of a sequence, or pixels along a side.")] = None,
    recompute: Annotated[Recompute, typer.Option(help="Activations that are computed again.")] = Recompute.none,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE of the shape's configuration, as num_hidden_layers=4; may be repeated."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, hpu, cuda or cpu.")] = "auto",
    mode: Annotated[Mode, typer.Option(help="As train.mode.")] = Mode.auto,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0 = all cores of the process.")] = 0,
    warm_up: Annotated[int, typer.Option(min=0, help="Steps of each round that are not timed.")] = 3,
    repeats: Annotated[int, typer.Option(min=1, help="Timed steps of each round.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="How often each row is measured; the rows take turns.")] = 5,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the file: its rows and settings hold.")] = False,
) -> None:
    """Measure every shape with every batch size and precision; the file is replaced after each row.

    Exit codes: 0 done (out of memory is a result), 1 a row failed, 2 a wrong option.
    """
    from gaudi3_benchmark import runner
    from gaudi3_benchmark.result import Settings, read

    runner.refuse_many_processes()
    _check_files(to, resume, shape)
    found = read(to) if resume else None
    chosen = found.settings.mode if found else mode.value
    _import_torch(device, chosen)
    import torch

    from gaudi3_benchmark.environment import describe
    from gaudi3_scale.hpu import device as devices
    from gaudi3_scale.models.build import quiet_bars

    wanted = runner.Request(
        shape or [], batch or [1], precision or ["bf16-mixed"], size, recompute.value, _changes(changes or [])
    )
    cases = [row.case for row in found.rows] if found else wanted.cases(chosen)
    place = devices.resolve(device, 0, 1)
    place.compile_backend(chosen)
    torch.set_num_threads(found.settings.threads if found else devices.threads(threads, 1))
    quiet_bars()
    environment = describe(place, dict.fromkeys(case.precision for case in cases))
    if found is None:
        settings = Settings(
            warm_up=warm_up, repeats=repeats, rounds=rounds, mode=chosen, threads=torch.get_num_threads()
        )
        found = runner.begin(cases, settings, environment)
    else:
        found = runner.go_on(found, environment, to)
    done = runner.run(found, to, place, typer.echo)
    typer.echo(f"{to}: {len(done.rows)} row(s) on {done.environment.label}")
    if any(row.outcome == "failed" for row in done.rows):
        raise typer.Exit(1)


@app.command()
def shapes() -> None:
    """List the shapes, with the size that a step has where none is given."""
    from gaudi3_benchmark.workloads import DIFFUSION, default_size
    from gaudi3_benchmark.workloads import shapes as names

    for name in names():
        size = default_size(name)
        typer.echo(f"{name:<24} {f'images of {size} x {size}' if name in DIFFUSION else f'{size:,} tokens'}")


@app.command()
def report(
    result: ResultFile,
    to: Annotated[Path | None, typer.Option(help="Write .html (needs the extra report) or .txt.")] = None,
) -> None:
    """Print a result as a table, or write it as a file."""
    from gaudi3_benchmark.report import write
    from gaudi3_benchmark.result import read
    from gaudi3_benchmark.show import as_text

    found = read(result)
    if to is None:
        typer.echo(as_text(found), nl=False)
    else:
        write(found, to)
        typer.echo(f"{to}")


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A result.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another one, of the same cases.")],
    format_: Annotated[Format, typer.Option("--format", help="Of what is printed.")] = Format.text,
) -> None:
    """Say for each case that both have how many times as fast the new one is: faster, slower, or no difference shown.

    Exit codes: 0 compared, whatever came of it; 2 the results cannot be compared.
    """
    from gaudi3_benchmark.comparison import compare as compared
    from gaudi3_benchmark.result import read

    found = compared(read(old), read(new))
    typer.echo(found.text() if format_ is Format.text else json.dumps(found.json(), indent=1) + "\n", nl=False)


@app.command()
def sign(
    result: ResultFile,
    key: Annotated[Path, typer.Option(help="Your SSH key, or the public one of a key that the agent has.")],
) -> None:
    """Sign a finished result with ssh-keygen, to send both files."""
    from gaudi3_benchmark.signature import sign as signed

    typer.echo(f"{signed(result, key)}: send it with {result}")


@app.command()
def verify(
    result: ResultFile,
    signers: Annotated[Path, typer.Option(help="A name and a public key in each line: ssh-keygen's allowed signers.")],
    signature: Annotated[Path | None, typer.Option(help="RESULT.sig without it.")] = None,
) -> None:
    """Say who signed a result; exit code 1 if nobody of the signers did, or it was changed since."""
    from gaudi3_benchmark.result import read
    from gaudi3_benchmark.signature import verify as verified

    name = verified(result, signers, signature)
    typer.echo(f"signed by {name}, measured on {read(result).environment.label}")


def _check_files(to: Path, resume: bool, shape: list[str] | None) -> None:
    if resume and shape:
        raise ConfigError("--resume goes on with the rows of the file: leave --shape out, or give another file.")
    if not resume and not shape:
        raise ConfigError("--shape is missing: give one or more of those that gaudi3-benchmark shapes lists.")
    if not resume and to.exists():
        raise ConfigError(f"--to is {to}, which exists: give another file, or --resume to go on with it.")
    if not to.absolute().parent.is_dir():
        raise ConfigError(f"--to is {to}, whose folder does not exist: make it, or give another file.")


def _changes(pairs: list[str]) -> dict[str, Any]:
    """Values as YAML reads them."""
    made = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set is {pair!r}: give KEY=VALUE, as num_hidden_layers=4.")
        try:
            made[name] = yaml_file.read(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set is {pair!r}, whose value is not valid YAML: put it in quotes.") from None
    return made


def _import_torch(device: str, mode: str) -> None:
    """With the device plugins, unless it is for processors."""
    from gaudi3_scale.hpu.environment import lazy_mode
    from gaudi3_scale.hpu.torch_import import import_torch

    if device not in ("auto", "hpu", "cuda", "cpu"):
        raise ConfigError(f"--device is {device!r}: give auto, hpu, cuda or cpu.")
    os.environ["PT_HPU_LAZY_MODE"] = lazy_mode(mode, os.environ)
    import_torch(device, "give --device cpu")


def main() -> NoReturn:
    """Run the command line; what a user can act on is said in one sentence."""
    try:
        code = call(app, "gaudi3-benchmark")
    except TrainerError as error:
        with contextlib.suppress(OSError):
            print(f"gaudi3-benchmark: {error}", file=sys.stderr)
        code = error.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception:
        with contextlib.suppress(OSError):
            traceback.print_exc()
        code = 1
    from gaudi3_scale.hpu.acquire import give_up

    give_up()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)
