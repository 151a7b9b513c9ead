"""What to type next, as a line that runs where it is pasted."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LAUNCHER = "GAUDI3_LAUNCHER"
"""How this job's launchers meet, as a JSON list of their arguments; set by `gaudi3_scale.launch` for its workers."""
FOLDER = "model"


def meeting(args: Any) -> list[str]:
    """The arguments of the launcher by which its nodes meet, of all that it was given."""
    if args.rdzv_endpoint or args.rdzv_backend != "static":
        found = [f"--rdzv-backend={args.rdzv_backend}", f"--rdzv-endpoint={args.rdzv_endpoint}", "--rdzv-id=export"]
    else:
        found = [f"--master-addr={args.master_addr}"]
        found += [f"--master-port={args.master_port}"] if args.master_port is not None else []
    if args.rdzv_backend == "static":
        found.append(f"--node-rank={args.node_rank}")
    more = {"--rdzv-conf": args.rdzv_conf, "--local-addr": args.local_addr}
    more["--secret-file"] = Path(args.secret_file).absolute() if args.secret_file is not None else None
    return [*found, *(f"{name}={value}" for name, value in more.items() if value)]


def next_command(
    arguments: Sequence[str], nodes: int = 1, environment: Mapping[str, str] | None = None, here: Path = Path()
) -> str:
    """The command that writes the model of a job which was trained with these arguments; empty for another program.

    Args:
        arguments: sys.argv of the training.
        nodes: over which the checkpoint's files are spread; 1 where this one has, or can get, all of them.
        environment: of the training; None = this process's.
        here: where it is going to be typed.
    """
    program = _program(arguments[0]) if arguments[1:2] == ["fit"] else []
    if not program:
        return ""
    export = ["export", "--to", _free(here), *arguments[2:]]
    if nodes == 1:
        return f"next: {shlex.join([*program, *export])}"
    met = (os.environ if environment is None else environment).get(LAUNCHER)
    if met is None:
        return f"next, on every node under the launcher that fit had: {shlex.join([*program, *export])}"
    how = [f"--nnodes={nodes}", "--nproc-per-node=1", *json.loads(met)]
    return f"next, on every node: {shlex.join([*_launched(program, how), *export])}"


def command_line(*arguments: str, processes: int = 1) -> str:
    """A command of the trainer, by the name that this process was started by, on this many processes of this node."""
    program = _program(sys.argv[0]) or ["gaudi3-train"]
    if processes > 1:
        program = _launched(program, [f"--nproc-per-node={processes}"])
    return shlex.join([*program, *arguments])


def _launched(program: list[str], how: list[str]) -> list[str]:
    """A program of several processes."""
    script = program[1:] if len(program) > 1 else ["--no-python", *program]
    return [_python(), "-m", "gaudi3_scale.launch", *how, *script]


def _program(called: str) -> list[str]:
    """What runs this trainer from a shell; empty if the program is another one."""
    path = Path(called)
    if path.name == "__main__.py" and path.parent.name == "gaudi3_scale":
        return [_python(), "-m", "gaudi3_scale"]
    if path.name != "gaudi3-train":
        return []
    return [_short("gaudi3-train", str(path))]


def _python() -> str:
    return _short("python", sys.executable)


def _short(name: str, path: str) -> str:
    """The name, if a shell finds that very file by it: an interpreter that is linked to is another environment's."""
    return name if path == name or shutil.which(name) == path else path


def _free(here: Path) -> str:
    """A folder that is not there, or is empty."""
    number = 1
    while True:
        name = FOLDER if number == 1 else f"{FOLDER}-{number}"
        path = here / name
        if not path.is_symlink() and (not path.exists() or (path.is_dir() and not any(path.iterdir()))):
            return name
        number += 1
