"""Run one row in a process of its own, with a limit of time, and judge what it did."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.contract.programs import ENVIRONMENTS, HERE, ROOT, SOURCES, Row

PASSES, FAILS, REFUSED, NOT_RUN = "passes", "fails", "refused on purpose", "not run"
NO_NAMESPACE = 77
"""Exit code of `machine.py` where the kernel gives no mount namespace."""


@dataclass(frozen=True)
class Twin:
    """What the programs run on: the built device and the source of the simulated node."""

    device: Path = ROOT / ".cache" / "hpu"
    simulator: Path = ROOT / "simulator" / "src"


@dataclass(frozen=True)
class Outcome:
    """What a row did."""

    result: str
    line: str
    """The decisive line of a failure, or why it did not run."""
    seconds: float
    output: str

    def is_expected(self, row: Row) -> bool:
        """Whether the row did what it has to do."""
        return self.result == (REFUSED if row.refused else PASSES)


def run(row: Row, twin: Twin) -> Outcome:
    """Run ``row`` to its end or its limit."""
    reason = row.missing()
    if reason:
        return Outcome(NOT_RUN, reason, 0.0, "")
    started = time.monotonic()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and row.node else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="gaudi3-contract-") as name:
        folder = Path(name)
        for part in ("work/checkpoints", "tmp", "home", "node"):
            (folder / part).mkdir(parents=True)
        (folder / "cards").mkdir(mode=0o700)
        process = subprocess.Popen(
            _command(row, twin, folder),
            cwd=folder / "work",
            env=_environment(row, twin, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=row.limit)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            output = _end(process)
    seconds = time.monotonic() - started
    result, line = _judge(row, process.returncode, output, late)
    return Outcome(result, line, seconds, output)


def _end(process: subprocess.Popen[str]) -> str:
    """End a program; torchrun passes SIGTERM on to its workers, which are in sessions of their own."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=20)[0]
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def _judge(row: Row, code: int, output: str, late: bool) -> tuple[str, str]:
    if late:
        return FAILS, f"not done after {row.limit} s; last line: {_last(output)}"
    if row.node and code == NO_NAMESPACE:
        return NOT_RUN, "this kernel gives no mount namespace"
    if code == 0:
        if row.prints and not re.search(row.prints, output):
            return FAILS, f"exit code 0 without a line that matches {row.prints!r}; last line: {_last(output)}"
        return PASSES, ""
    if row.refused and re.search(row.refusal, output):
        return REFUSED, row.refused
    died = f"killed by signal {-code}: " if code < 0 else ""
    return FAILS, died + _decisive(output)


_NAMED = re.compile(
    r"^\s*(E\s+|\[rank\d+\]:\s*)?[\w.]*(Error|Exception|NotSimulated|BackendCompilerFailed)\b.*"
    r"|FATAL ERROR|Segmentation fault"
)


def _decisive(output: str) -> str:
    """The line that tells a failure: the last one that names an error, else the last one."""
    named = [line.strip() for line in output.splitlines() if _NAMED.search(line)]
    own = [line for line in named if "ChildFailedError" not in line and "error_file" not in line]
    return (own[-1] if own else _last(output))[:400]


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:400] if lines else "(no output)"


def _command(row: Row, twin: Twin, folder: Path) -> list[str]:
    repository = str(Path(os.environ.get(SOURCES, "")).resolve() / row.repository)
    kind, target, *arguments = (word.replace("{repository}", repository) for word in shlex.split(row.run))
    python = str(ENVIRONMENTS[row.environment] / "bin" / "python")
    if kind == "check":
        program = [str(HERE / "checks" / f"{target}.py")]
    elif kind == "file":
        program = [f"{repository}/{target}"]
    else:
        program = ["-m", target]
    if program[-1].endswith(".sh"):
        command = ["bash", *program]
    elif row.cards > 1:
        command = [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={row.cards}"]
        command += [word for word in program if word != "-m"] if program[0] != "-m" else ["-m", target]
    else:
        command = [python, *program]
    command += arguments
    if row.node:
        machine = [sys.executable, str(HERE / "machine.py"), str(folder / "node"), str(twin.simulator)]
        command = [*machine, ",".join(row.faults), *command]
    return command


def _environment(row: Row, twin: Twin, folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key in ("LANG", "TERM", "LD_LIBRARY_PATH", SOURCES)}
    python_path = [str(twin.device)]
    if row.stand_ins:
        python_path.insert(0, str(HERE / "stand_ins"))
    folders = [str(ENVIRONMENTS[row.environment] / "bin"), "/usr/local/sbin", "/usr/local/bin"]
    return {
        **kept,
        "PATH": ":".join([*folders, "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
        "PYTHONPATH": ":".join(python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "OMP_NUM_THREADS": "1",
        "GAUDI3_HPU_SIMULATOR_CARDS": str(folder / "cards"),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "CONTRACT_REPOSITORY": str(Path(os.environ.get(SOURCES, "")).resolve() / row.repository),
        **row.variables,
    }
