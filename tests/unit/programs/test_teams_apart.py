"""Users of two teams on one host: what a job leaves is read by its own team alone, by files and by the job's page.

The job's user is one of the team's own, as the page about teams asks for, and anna is in that user's group.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import Control
from gaudi3_watch.folder import FolderSource
from gaudi3_watch.view import Asked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders of two users")
VISION, SPEECH = 3001, 3002
"""The users of the teams' jobs, each with a group of its own."""
ANNA, CARLA = (3101, VISION), (3102, SPEECH)


@pytest.fixture
def jobs() -> Iterator[Path]:
    """The folder of jobs, with one of the team vision as gaudi_train and the trainer make it."""
    top = Path(tempfile.mkdtemp(prefix="gaudi3-teams-"))  # pytest's own is closed to other users
    top.chmod(0o755)
    folder = top / "jobs/vision-llama"
    control = Control(str(folder))
    control.output.make((VISION, VISION))
    control.write({"job.json": "{}\n", "config.yml": "seed: 1\n"}, VISION)
    for name, text in {
        "status.json": {"state": "running", "step": 7},
        "metrics.jsonl": {"step": 7, "loss": 1.5},
    }.items():
        (folder / name).write_text(json.dumps(text) + "\n")
        os.chown(folder / name, VISION, VISION)
    (folder / "checkpoints").mkdir()
    try:
        yield top / "jobs"
    finally:
        shutil.rmtree(top)


def as_user(who: tuple[int, int], ask: Callable[[], object]) -> str:
    """What a function returns in a process of the user, or the name of its error."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([who[1]])
            os.setresgid(who[0], who[0], who[0])
            os.setresuid(who[0], who[0], who[0])
            said = str(ask())
        except BaseException as error:  # whatever it is, the parent is told
            said = type(error).__name__
        os.write(writing, said.encode()[:60000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def test_files_of_a_job_are_its_teams(jobs: Path) -> None:
    job, control = jobs / "vision-llama", jobs / ".control/vision-llama"
    asked: dict[str, Callable[[], object]] = {
        "list": lambda: sorted(os.listdir(job)),
        "status": (job / "status.json").read_text,
        "metrics": (job / "metrics.jsonl").read_text,
        "configuration": (control / "config.yml").read_text,
        "record": (control / "job.json").read_text,
    }
    assert {name: as_user(CARLA, ask) for name, ask in asked.items()} == dict.fromkeys(asked, "PermissionError")
    found = {name: as_user(ANNA, ask) for name, ask in asked.items()}
    assert json.loads(found["status"])["step"] == 7 and found["configuration"] == "seed: 1\n"


def test_nobody_but_its_user_changes_a_job(jobs: Path) -> None:
    job, control = jobs / "vision-llama", jobs / ".control/vision-llama"
    changes: dict[str, Callable[[], object]] = {
        "file": lambda: (job / "stop").touch(),
        "status": lambda: (job / "status.json").write_text("{}"),
        "configuration": lambda: (control / "config.yml").write_text("seed: 2\n"),
        "replaced": lambda: (job / "status.json").replace(job / "old"),
        "removed": lambda: job.rename(jobs / "other"),
        "another": lambda: (jobs / "vision-new").mkdir(),
    }
    for who in (ANNA, CARLA):
        assert {name: as_user(who, change) for name, change in changes.items()} == dict.fromkeys(
            changes, "PermissionError"
        )


def test_the_page_of_a_job_shows_others_nothing(jobs: Path) -> None:
    asked = Asked()

    def page(folder: Path) -> Callable[[], object]:
        return lambda: json.dumps(FolderSource(folder).page(asked))

    assert '"title": "vision-llama"' in as_user(ANNA, page(jobs / "vision-llama"))
    for folder in (jobs, jobs / "vision-llama"):
        said = as_user(CARLA, page(folder))
        assert "The user of this page may not read 1 folder here, whose jobs are left out." in said
        assert "running" not in said and "1.5" not in said, said
