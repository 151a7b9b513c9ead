"""torchrun as the torch versions have it that Intel's releases ship: what the launcher has to do without.

The facts are in `VERSIONS`; `test_torch_matrix.py` holds them against the wheels. `install` makes the installed
torchrun behave as that of another version, which costs a test nothing; a worker of the tests is here, too.

    OLD_TORCH=2.9.1
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


@dataclass(frozen=True)
class Launcher:
    """What torchrun of one version offers; read in the wheel of the Python package index."""

    signals_option: bool
    """`torch/distributed/run.py`, get_args_parser: has it `--signals-to-handle`?"""
    shutdown_option: bool
    """There too: `--shutdown-timeout`; and `torch/distributed/launcher/api.py` reads TORCH_ELASTIC_SHUTDOWN_TIMEOUT."""


VERSIONS = {
    "2.9.1": Launcher(signals_option=False, shutdown_option=False),
    "2.10.0": Launcher(signals_option=True, shutdown_option=False),
    "2.11.0": Launcher(signals_option=True, shutdown_option=False),
    "2.13.0": Launcher(signals_option=True, shutdown_option=True),
}
"""SynapseAI 1.23 ships torch 2.9, 1.24.0 2.10, 1.24.1 2.11; 2.13 is the one of these tests."""
SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
"""What every version handles unasked: PContext.start in `torch/distributed/elastic/multiprocessing/api.py`."""
LITERAL = 30
"""Default of `timeout` in PContext.close there, in all of them; those without the option have no other."""
SHORTENED = 1
"""In place of `LITERAL` in tests that would otherwise have to wait for it."""


def install(version: str) -> None:
    """Take away from torchrun what this version does not have, and shorten its patience."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.multiprocessing.api import PContext

    about = VERSIONS[version]
    made, close, shutdown = torchrun.get_args_parser, PContext.close, LocalElasticAgent._shutdown

    def parser() -> Any:
        found = made()
        for name, there in (("signals", about.signals_option), ("shutdown", about.shutdown_option)):
            for action in [a for a in found._actions if a.dest.startswith(f"{name}_") and not there]:
                found._actions.remove(action)
                for group in found._action_groups:
                    if action in group._group_actions:
                        group._group_actions.remove(action)
                for option in action.option_strings:
                    del found._option_string_actions[option]
                found.set_defaults(**{action.dest: SIGNALS if name == "signals" else None})
        return found

    def short(self: Any, death_sig: Any = None, timeout: int = SHORTENED) -> None:
        close(self, death_sig, timeout)

    takes_timeout = "timeout" in inspect.signature(shutdown).parameters

    def forgetful(self: Any, death_sig: signal.Signals = signal.SIGTERM, timeout: int = SHORTENED) -> None:
        shutdown(self, death_sig, *([SHORTENED] if takes_timeout else []))

    torchrun.get_args_parser = parser
    PContext.close = short  # type: ignore[method-assign]
    if not about.shutdown_option:
        LocalElasticAgent._shutdown = forgetful  # type: ignore[method-assign]


def worker(folder: Path, seconds: list[float]) -> NoReturn:
    """Until a signal comes, wait; then save for so many seconds (one number per rank) and leave as interrupted.

    A rank with a negative number leaves unasked, once all ranks are there, after so many seconds.
    """
    rank = os.environ["LOCAL_RANK"]
    heard: list[int] = []
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: heard.append(number))
    (folder / f"ready-{rank}").touch()
    mine = seconds[int(rank)]
    while not heard and not (mine < 0 and all((folder / f"ready-{r}").exists() for r in range(len(seconds)))):
        time.sleep(0.01)
    end = time.monotonic() + abs(mine)
    while time.monotonic() < end:
        time.sleep(0.01)
    (folder / f"saved-{rank}").write_text(",".join(signal.Signals(number).name for number in heard))
    os._exit(75)


if __name__ == "__main__":
    worker(Path(sys.argv[1]), [float(part) for part in sys.argv[2:]])
