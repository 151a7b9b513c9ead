"""The backup of Slurm's accounting with the real MariaDB: dumped while it runs, lost, and made again as it was.

Needs mariadb-server and mariadb-client, which .cache/slurm has.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import databases
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

USR = Path(__file__).resolve().parents[2] / ".cache/slurm/usr"
NAME = "slurm_acct_db"
JOBS = f"""CREATE DATABASE {NAME}; USE {NAME};
CREATE TABLE gaudi_job_table (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT, tres BLOB) ENGINE=InnoDB;
INSERT INTO gaudi_job_table (name, tres) VALUES ('bert', x'00ff'), ('it''s', NULL);
"""


def client(statements: str) -> str:
    done = subprocess.run(["mariadb"], input=statements, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    data, socket = tmp_path / "data", f"/tmp/gaudi-backup-{os.getpid()}.sock"
    monkeypatch.setenv("PATH", f"{USR}/bin:{USR}/sbin:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{USR}/lib/x86_64-linux-gnu")
    monkeypatch.setenv("MYSQL_UNIX_PORT", socket)
    user = [] if os.geteuid() else ["--user=root"]
    places = ["--no-defaults", *user, f"--basedir={USR}", f"--datadir={data}"]
    made = subprocess.run(
        ["mariadb-install-db", *places, "--auth-root-authentication-method=normal", "--skip-test-db"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with (tmp_path / "log").open("w") as log:
        more = [f"--socket={socket}", "--skip-networking", f"--lc-messages-dir={USR}/share/mysql"]
        process = subprocess.Popen(["mariadbd", *places, *more], stdout=log, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + 120
            while subprocess.run(["mariadb", "-e", "SELECT 1"], capture_output=True, check=False).returncode:
                assert process.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
                time.sleep(0.1)
            yield process
        finally:
            process.kill()
            process.wait()
            Path(socket).unlink(missing_ok=True)


def test_accounting_that_was_lost_is_as_it_was(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    assert databases.copy_sql(NAME, first, "slurm-accounting") == []
    assert databases.sql_tables(NAME) is None
    client(JOBS)
    before = databases.copy_sql(NAME, first, "slurm-accounting")
    assert [(entry.path, entry.mode, Path(first).stat().st_size == entry.size) for entry in before] == [
        ("", 0o600, True)
    ]
    assert databases.copy_sql(NAME, second, "slurm-accounting") == before, "the same content has the same dump"

    client(f"DROP DATABASE {NAME}")
    databases.put_sql(NAME, first)
    assert databases.sql_tables(NAME) == ["gaudi_job_table"]
    assert databases.copy_sql(NAME, third, "slurm-accounting") == before
    client(f"INSERT INTO {NAME}.gaudi_job_table (name) VALUES ('later')")
    assert databases.copy_sql(NAME, third, "slurm-accounting") != before
    databases.put_sql(NAME, first)
    assert client(f"SELECT name FROM {NAME}.gaudi_job_table").split() == ["name", "bert", "it's"]

    server.kill()
    server.wait()
    # Not left out in silence, as where there is no MariaDB.
    with pytest.raises(
        Refusal, match=r"^MariaDB does not answer \(.*\): start mariadb\.service, and see that root may "
    ):
        databases.copy_sql(NAME, third, "slurm-accounting")
