"""The command: what it refuses in a sentence, and that it serves until it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from test_listening import certificate
from typer.testing import CliRunner

from gaudi3_scale.errors import TrainerError
from gaudi3_watch import cli

PASSWORD = "correct horse battery\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "FOLDER/none"], "is no folder"),
        (["run", "FOLDER", "--health", "FOLDER/none"], "--health is"),
        (["run", "FOLDER", "--listen", "0.0.0.0:0"], "give --certificate and --key and --password-file"),
        (["run", "FOLDER", "--listen", "somewhere"], "--listen is 'somewhere'"),
        (["run", "FOLDER", "--password-file", "FOLDER/none"], "cannot be read"),
        (["run", "FOLDER", "--certificate", "FOLDER/a.crt"], "give both"),
        (["cluster", "--prometheus", "monitor:9090"], "--prometheus is no address"),
        (["cluster", "--prometheus", "https://me:secret@monitor"], "--prometheus-password-file"),
        (["cluster", "--prometheus", "http://monitor:9090", "--prometheus-password-file", "FOLDER/p"], "in the clear"),
        (
            ["cluster", "--prometheus", "https://monitor", "--prometheus-ca-file", "FOLDER/none"],
            "--prometheus-ca-file is",
        ),
        (["cluster", "--prometheus", "https://monitor", "--health", "FOLDER/none"], "--health is"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(cli.app, [each.replace("FOLDER", str(tmp_path)) for each in arguments])
    assert isinstance(found.exception, TrainerError)
    assert said in str(found.exception) and str(found.exception).endswith(".") and "secret@" not in str(found.exception)


def test_beyond_this_machine_a_certificate_out_of_date_is_refused(tmp_path: Path) -> None:
    paths = certificate(tmp_path, -9, -1)
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "password").chmod(0o600)
    given = ["--certificate", str(paths[0]), "--key", str(paths[1]), "--password-file", str(tmp_path / "password")]
    found = CliRunner().invoke(cli.app, ["run", str(tmp_path), "--listen", "0.0.0.0:0", *given])
    assert "has expired" in str(found.exception)


def test_it_serves_until_it_is_stopped(job: Path) -> None:
    command = [sys.executable, "-m", "gaudi3_watch", "run", str(job), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as served:
        assert served.stdout is not None and served.stderr is not None
        address = served.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}data.json", timeout=20) as answer:
            assert json.load(answer)["title"] == "job"
        again = CliRunner().invoke(cli.app, ["run", str(job), "--listen", address.removeprefix("http://").rstrip("/")])
        assert "cannot be listened on" in str(again.exception)
        served.send_signal(signal.SIGINT)
        assert served.wait(20) == 130
        assert served.stderr.read() == ""


def test_what_the_document_shows_of_a_job_is_served(job: Path, tmp_path: Path) -> None:
    """As it stands there, but for the port, which another program may have."""
    document = (Path(__file__).resolve().parents[2] / "docs/use/watch.md").read_text()
    (tmp_path / "run").symlink_to(job)
    paths = certificate(tmp_path, -1, 9)
    for path, name in zip(paths, ("watch.crt", "watch.key"), strict=True):
        path.rename(tmp_path / name)
    (tmp_path / "watch.password").write_text(PASSWORD)
    (tmp_path / "watch.password").chmod(0o600)
    shown = [line.split()[1:] for line in document.splitlines() if line.startswith("gaudi3-watch run ")]
    assert len(shown) == 2
    for given in shown:
        arguments = [each.replace("0.0.0.0:9109", "0.0.0.0:0") for each in given]
        arguments += [] if "--listen" in given else ["--listen", "127.0.0.1:0"]
        command = [sys.executable, "-m", "gaudi3_watch", *arguments]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=os.environ) as served:
            assert served.stdout is not None
            assert served.stdout.readline().startswith("https://0.0.0.0:" if "--key" in given else "http://127.0.0.1:")
            served.terminate()


def test_it_starts_without_torch() -> None:
    program = (
        "import sys, gaudi3_watch.cli, gaudi3_watch.folder, gaudi3_watch.cluster\n"
        "print({'torch', 'numpy', 'lightning'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "set()"
