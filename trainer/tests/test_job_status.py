"""status.json as it is read: by one reader, which refuses in a sentence what no job has written."""

from __future__ import annotations

import ast
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import SOURCE, SOURCES

from gaudi3_doctor.card_sections import _result, _trainer
from gaudi3_doctor.job_status import FILE, MAX_BYTES, JobStatus, read
from gaudi3_scale.batch_warmup.jobs import run_job
from gaudi3_scale.cost.chargeback import charge
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.job.lineage import results_of
from gaudi3_scale.job.verify_resume import _Run
from gaudi3_scale.launch.outcome import JobOutcome
from gaudi3_scale.status import Progress, StatusFile, read_status
from gaudi3_scale.tuning.fit_runner import FitRunner

PACKAGE = SOURCE / "gaudi3_scale"
#: The trainer's files as seen from its package, and those of what lies beside it with their package's name.
TREES = {
    path.relative_to(PACKAGE if PACKAGE in path.parents else source).as_posix(): ast.parse(path.read_text())
    for source in SOURCES
    for path in sorted(source.rglob("*.py"))
}


def test_what_a_job_writes_is_read_with_all_its_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVOCATION_ID", "2f1d")
    job = Progress(max_steps=100, world_size=4, device="cpu", tokens_per_sample=16, samples_per_step=32)
    job.loss, job.goodput, job.simulated, job.checkpoint = float("nan"), {"steps": 1.5}, True, tmp_path
    StatusFile(tmp_path / FILE).write("running", job)
    found = read(tmp_path / FILE)
    assert found == json.loads((tmp_path / FILE).read_text())
    assert found.keys() == JobStatus.__annotations__.keys()
    assert read(tmp_path / "none") == read(tmp_path / FILE / "none") == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not JSON, so"),
        (b'{"state": "running", "st', "is not JSON, so"),
        (b"\xff\x00\xfe", "is not JSON, so"),
        (b"[" * 10**5, "is not JSON, so"),
        (b'{"step": ' + b"9" * 5000 + b"}", f"has the number {'9' * 37}..., which no status has:"),
        (b'{"step": 9223372036854775808}', "has the number 9223372036854775808, which no status has:"),
        (b'{"goodput": {"seconds": {"compute": -1e999}}}', "has the number -1e999, which no status has:"),
        (b'{"loss": NaN}', "is not JSON, so"),
        (b"[]", "is no JSON object, so"),
        (b"null", "is no JSON object, so"),
        (b" " * (MAX_BYTES + 1), "is longer than 1,048,576 bytes, so"),
        (b'{"step": "4"}', "has 'step' as \"4\", which has to be a whole number or null:"),
        (b'{"step": true}', "has 'step' as true, which has to be a whole number or null:"),
        (b'{"max_steps": 1e400}', "has the number 1e400, which no status has:"),
        (b'{"max_steps": 1.5}', "has 'max_steps' as 1.5, which has to be a whole number or null:"),
        (b'{"loss": 1e400}', "has the number 1e400, which no status has:"),
        (b'{"updated_at": null}', "has 'updated_at' as null, which has to be a number:"),
        (b'{"cost": [1]}', "has 'cost' as [1], which has to be an object or null:"),
        (b'{"simulated": 0}', "has 'simulated' as 0, which has to be true or false or null:"),
        (b'{"error": {"a": "' + b"b" * 100 + b'"}}', 'has \'error\' as {"a": "bbb'),
        (b'{"state": ["finished"]}', "has 'state' as [\"finished\"], which has to be a text:"),
        (b'{"state": "done\\n\\u001b[\x7f"}', 'has the state "done\\n\\u001b[\\u007f", not one of starting, running, '),
    ],
)
def test_what_no_job_writes_is_refused_in_a_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(TrainerError) as raised:
        read_status(tmp_path)
    said = str(raised.value)
    assert said.startswith(f"{path} {sentence}") and said.endswith(": delete it; a running job writes it again.")
    assert said.isprintable() and len(said) < 400 + len(str(path))
    assert StatusFile(path).read() == {} and not StatusFile(path).finished(1)


# Each place that reads the status, with one that is damaged: what it ends with, or says.


def from_chargeback(folder: Path) -> str:
    terms = {"currency": "EUR", "node_price_per_hour": 1.0}
    with pytest.MonkeyPatch.context() as patch:
        spent = SimpleNamespace(currency="EUR", total=1.0, parts={})
        patch.setattr("gaudi3_scale.cost.chargeback.Bill", lambda lines: SimpleNamespace(spent=lambda: spent))
        patch.setattr("gaudi3_scale.cost.chargeback.read", lambda path: [{"step": 1}])
        patch.setattr("gaudi3_scale.cost.chargeback.terms_of", lambda line: terms)
        with pytest.raises(TrainerError) as raised:
            charge(folder)
    return str(raised.value)


def from_doctor(folder: Path) -> str:
    job = folder / "job"
    job.mkdir()
    shutil.copy(folder / FILE, job / FILE)
    ended = SimpleNamespace(code=0, seconds=1.0, out="", err="")
    host = SimpleNamespace(run=lambda *arguments: ended)
    place = SimpleNamespace(
        host=host, python="python3", user=None, environment={}, folder=str(folder), patience=1.0, put=lambda *_: "text"
    )
    found = _trainer(cast("Any", place))
    assert found["status"] is None
    return _result({"data": {"trainer": found}}).odd[0].replace("/job/", "/")


def from_outcome(folder: Path) -> str:
    JobOutcome(folder / FILE, own=True).end(1, "process 0 of this node ended with exit status 1")
    written = read_status(folder)
    assert written["state"] == "failed" and written["started_at"] <= time.time()
    return str(written["error"])


def from_batch_warmup(folder: Path) -> str:
    with pytest.raises(TrainerError) as raised:
        run_job({"output_dir": str(folder)}, 1, lambda file, processes: None)
    return str(raised.value)


def from_register(folder: Path) -> str:
    with pytest.raises(TrainerError) as raised:
        results_of(folder, 1)
    return str(raised.value)


def from_verify_resume(folder: Path) -> str:
    run = object.__new__(_Run)
    run.output = folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Run, "_command", lambda self, processes: ["true"])
        with pytest.raises(TrainerError) as raised:
            run.finish(1)
    return str(raised.value)


def from_tuning(folder: Path) -> str:
    runner = object.__new__(FitRunner)
    runner._options = cast("Any", SimpleNamespace(warm_steps=1, target_loss=None))
    trial = SimpleNamespace(folder=folder)
    process = SimpleNamespace(resident_bytes=2**30, code=lambda: 1)
    return runner._outcome(cast("Any", trial), cast("Any", process), "", "").reason


READERS: dict[str, tuple[Callable[[Path], str], str]] = {
    "batch_warmup/jobs.py": (from_batch_warmup, "has 'step'"),
    "cost/chargeback.py": (from_chargeback, "has 'step'"),
    "gaudi3_doctor/card_sections.py": (from_doctor, "has 'step'"),
    "job/lineage.py": (from_register, "has 'step'"),
    "job/verify_resume.py": (from_verify_resume, "has 'step'"),
    "launch/outcome.py": (from_outcome, "process 0 of this node ended with exit status 1"),
    "tuning/fit_runner.py": (from_tuning, "exit code 1: it said nothing"),
}


@pytest.mark.parametrize("module", READERS)
def test_a_damaged_status_is_a_sentence_wherever_it_is_read(module: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"state": "finished", "step": [1], "updated_at": "now", "peak_memory_bytes": "much"}')
    reader, said = READERS[module]
    wanted = said if said != "has 'step'" else f"{tmp_path / FILE} has 'step' as [1], which has to be a whole number or"
    assert reader(tmp_path).startswith(wanted)


def docstrings(tree: ast.AST) -> set[int]:
    """The constants that only document."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def reads_status(tree: ast.AST) -> bool:
    """Whether a module reads it by the one reader."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            home = node.module.rpartition(".")[2]
            if home in ("status", "job_status") and {"read", "read_status"} & {each.name for each in node.names}:
                return True
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "read"
            and ast.unparse(node.value).startswith("StatusFile(")
        ):
            return True
    return False


def test_each_reader_of_the_status_is_one_of_these() -> None:
    """The file's name is written once; who has it, or a path of it, parses no other JSON than what is listed here."""
    named, parsers = set(), {}
    for module, tree in TREES.items():
        known = docstrings(tree)
        strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in known]
        if any(isinstance(each, str) and each.rpartition("/")[2] == FILE for each in strings):
            named.add(module)
        imported = {n.module.rpartition(".")[2] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        count = sum(
            isinstance(n, ast.Attribute) and ast.unparse(n) in ("json.loads", "json.load") for n in ast.walk(tree)
        )
        if count and imported & {"status", "job_status", "outcome", "status_callback"}:
            parsers[module] = count
    assert named == {"gaudi3_doctor/job_status.py"}
    assert parsers == {
        "gaudi3_doctor/card_sections.py": 1,  # what the workers of torchrun say
        "status.py": 2,  # the launcher's word on a hang; lines of metrics.jsonl, as the next two
        "tuning/fit_runner.py": 1,
        "job/lineage.py": 2,  # the lineage of an export; lines of evaluation.jsonl
        "job/verify_resume.py": 1,
        "launch/attempts.py": 1,  # its own file beside it, on the trace of a job
    }
    assert {module for module, tree in TREES.items() if reads_status(tree)} == {*READERS, "status.py"}
