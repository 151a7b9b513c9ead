"""The launcher over the torchrun of another torch: its Python files from the wheel, the rest the installed torch's.

Nothing is installed. `python wheels.py FOLDER ...` is `python -m gaudi3_scale.launch ...` with the files in FOLDER;
`python wheels.py FOLDER` prints what `old_launchers.VERSIONS` says of a version.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import zipfile
from pathlib import Path

import old_launchers

PARTS = ("distributed/run.py", "distributed/argparse_util.py", "distributed/elastic/", "distributed/launcher/", "numa/")
ROOTS = [part.rstrip("/") for part in PARTS]
FOLDER = Path(os.environ.get("GAUDI3_TORCH_WHEELS") or Path(__file__).resolve().parents[2] / ".cache" / "torch-wheels")
"""Where wheels are looked for; `make torch-matrix` downloads them to the default."""


def wheel(version: str, package: str = "torch") -> Path | None:
    """The wheel of a version, of whichever platform: what is used of it is the same in all."""
    return next(iter(sorted(FOLDER.glob(f"{package}-{version}[-+]*.whl"))), None)


def extract(path: Path, folder: Path) -> None:
    """Unpack the launcher's files."""
    wanted = tuple(f"torch/{part}" for part in PARTS)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder, [n for n in archive.namelist() if n.startswith(wanted) and n.endswith(".py")])


def use(folder: Path) -> None:
    """Have torch's launcher imported from the folder."""
    packages = [importlib.import_module(name) for name in ("torch.distributed", "torch.numa")]
    for package in packages:
        package.__path__.insert(0, str(folder / package.__name__.replace(".", "/")))
    for name, module in list(sys.modules.items()):
        path = name.removeprefix("torch.").replace(".", "/")
        if module not in packages and f"{path}/".startswith(tuple(f"{part.removesuffix('.py')}/" for part in ROOTS)):
            del sys.modules[name]


def facts() -> dict[str, object]:
    """What `old_launchers` has in its table, asked of the files themselves."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.multiprocessing.api import PContext
    from torch.distributed.launcher import api

    options = torchrun.get_args_parser().format_help()
    start = inspect.getsource(PContext.start)
    return {
        "files": [inspect.getfile(each) for each in (torchrun, api, LocalElasticAgent, PContext)],
        "signals_option": "--signals-to-handle" in options,
        "shutdown_option": "--shutdown-timeout" in options,
        "reads_variable": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" in inspect.getsource(api),
        "signals": all(name in start for name in old_launchers.SIGNALS.split(",")),
        "asks_for_signals": "TORCHELASTIC_SIGNALS_TO_HANDLE" in start,
        "literal": inspect.signature(PContext.close).parameters["timeout"].default,
        "agent_takes_timeout": "timeout" in inspect.signature(LocalElasticAgent._shutdown).parameters,
    }


if __name__ == "__main__":
    use(Path(sys.argv[1]))
    if len(sys.argv) == 2:
        print(json.dumps(facts()))
    else:
        from gaudi3_scale.launch import torchrun

        torchrun.main(sys.argv[2:])
