"""The command `gaudi3-deploy`: its commands, and what becomes of an error."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from gaudi3_deploy.app import app
from gaudi3_deploy.commands import (
    audit,
    certificate,
    check,
    down,
    fabric,
    fabric_addresses,
    holes,
    mirror,
    provision,
    reach,
    replace,
    run,
    serving,
    show,
    teams,
    upgrade,
    versions,
)
from gaudi3_deploy.errors import DeployError, UsageError

#: Each adds its commands; they are listed in this order.
GROUPS = (
    check,
    provision,
    reach,
    show,
    run,
    replace,
    down,
    serving,
    versions,
    upgrade,
    mirror,
    holes,
    certificate,
    fabric,
    fabric_addresses,
    audit,
    teams,
)


def main() -> NoReturn:
    """Exit codes: 0 done, 1 failed, 2 asked for something that can't be, 130 interrupted."""
    try:
        result = app(prog_name="gaudi3-deploy", standalone_mode=False)
        code = result if isinstance(result, int) else 0  # a command's typer.Exit comes back as a value
    except UsageError as error:
        print(f"gaudi3-deploy: {error}", file=sys.stderr)
        code = 2
    except DeployError as error:
        print(f"gaudi3-deploy: {error}", file=sys.stderr)
        code = 1
    except (KeyboardInterrupt, typer.Abort):
        print("gaudi3-deploy: interrupted; run again, it goes on", file=sys.stderr)
        code = 130
    except Exception as error:
        click_message = getattr(error, "format_message", None)
        if click_message is None:
            raise
        said = " ".join(click_message().split()).rstrip(".")
        if said:  # a call without arguments has printed its help, and has nothing more to say
            of = getattr(getattr(error, "ctx", None), "command_path", "gaudi3-deploy")
            advice = "" if said.endswith("?") else f": see `{of} --help`."
            print(f"gaudi3-deploy: {said}{advice}", file=sys.stderr)
        code = 2
    sys.stdout.flush()
    sys.exit(code)
