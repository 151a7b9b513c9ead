"""The command line of a program: its exit code, and a wrong request as one sentence."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.version import VERSION


def offer_version(app: typer.Typer, program: str) -> None:
    """Give ``app`` the option ``--version``, which needs no command."""

    def show(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{program} {VERSION}")
            raise typer.Exit

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", callback=show, is_eager=True, help="Print the version and stop."
        ),
    ) -> None:
        """Options that need no command."""


def call(app: typer.Typer, program: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``app``, with this process's arguments unless others are given; the exit code.

    Raises:
        ConfigError: There is no such command or option, a value is none, or one is missing.
    """
    try:
        result = app(arguments, prog_name=program, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:  # of click's, which typer does not hand out
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        said = " ".join(message().split()).rstrip(".")
        if not said:  # a call without arguments has printed its help
            return 2
        of = getattr(getattr(error, "ctx", None), "command_path", program)
        raise ConfigError(said if said.endswith("?") else f"{said}: see `{of} --help`.") from None
    return result if isinstance(result, int) else 0
