"""MariaDB and slurmdbd on a machine of the tests, with the files and by the module of role slurm."""

from __future__ import annotations

from .machines import Machine, wait_for
from .modules import run_module


def start(machine: Machine, password: str) -> None:
    """Run both, with what an earlier start left."""
    data = "/mnt/mysql"
    machine.run("mkdir", "-p", "/run/mysqld", "/run/mariadbd")  # where a release has its socket
    if not (machine.folder / "mysql").exists():
        machine.run(
            "mariadb-install-db", "--no-defaults", "--user=root", "--basedir=/usr", f"--datadir={data}",
            "--skip-test-db", "--auth-root-authentication-method=socket",
        )  # fmt: skip
    machine.serve(
        "mariadbd", "mariadbd", "--defaults-file=/etc/slurm/mariadb.cnf", "--user=root", f"--datadir={data}",
        "--log-error=/mnt/var/log/mariadb.log", "--pid-file=/run/mysqld/mysqld.pid",
    )  # fmt: skip
    wait_for("MariaDB", lambda: machine.run("mariadb", "-e", "SELECT 1", check=False).returncode == 0)
    make_database(machine, password)
    machine.serve("slurmdbd", "slurmdbd", "-D")
    wait_for("slurmdbd", lambda: "6819" in machine.run("ss", "-Hltn").stdout)


def make_database(machine: Machine, password: str, *, check: bool = False) -> bool:
    """Whether the role's module changed anything."""
    return bool(run_module(machine, "gaudi_slurm_database", {"password": password}, check=check)["changed"])
