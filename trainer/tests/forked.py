"""Jobs of one node in processes that are forked from a warm one: a run costs about a second."""

from __future__ import annotations

from pathlib import Path

from conftest import SMALL, Job, free_port
from zygote import Client, Started


class ForkedJob(Job):
    """As `Job`, without torch's import in every process."""

    def __init__(self, client: Client, folder: Path, text: Path, processes: int = 1, log: Path | None = None) -> None:
        """`log` begins the names of files for what it prints, which are in `folder` otherwise."""
        super().__init__(folder, text, processes=processes)
        self._client = client
        self._log = log or folder / "log"
        self._runs = 0

    def begin(self, *overrides: str, environment: dict[str, str] | None = None) -> Started:
        """Start it."""
        self._runs += 1
        log = self._log.with_name(f"{self._log.name}-{self._runs}")
        settings = ["fit", *SMALL, f"data.source={self.text}", f"output_dir={self.node()}", *overrides]
        if self.processes == 1:
            return self._client.start("worker", settings, environment or {}, log)
        launcher = ["--nnodes=1", f"--nproc-per-node={self.processes}", "--rdzv-backend=c10d", "--rdzv-id=test"]
        launcher += [f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--no-python", "gaudi3-train"]
        return self._client.start("launch", [*launcher, *settings], environment or {}, log)

    def fit(self, *overrides: str, code: int = 0, environment: dict[str, str] | None = None) -> str:
        """Run it to the end; what it printed."""
        started = self.begin(*overrides, environment=environment)
        ended = started.wait(120)
        assert ended == code, f"exit code {ended}\n{started.output()}"
        return started.output()
