"""Stores on loopback for repositories of restic: OpenSSH's own server, and moto as an S3 that asks for its keys."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TOOLS = Path(__file__).resolve().parents[4] / ".cache/tools"
NOBODY = 65534


class SftpStore(NamedTuple):
    """Where it listens, its folder, and what a client needs."""

    address: str
    folder: Path
    key: str
    """The private key that it knows."""
    known_hosts: str
    port: int


class S3Store(NamedTuple):
    """Its address without a bucket, and the keys of the one user who may use it."""

    address: str
    keys: dict[str, str]


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def keypair(path: Path) -> tuple[str, str]:
    """A new private key, and its public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return path.read_text(), path.with_name(f"{path.name}.pub").read_text().strip()


@contextmanager
def _running(argv: list[str], log: Path, environment: dict[str, str], port: int) -> Iterator[None]:
    with log.open("w") as said:
        process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        end = time.monotonic() + 120
        while True:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                break
            except OSError:
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def sftp_store(folder: Path) -> Iterator[SftpStore]:
    """OpenSSH's server as a user without rights, who may use SFTP alone, by one key."""
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:{TOOLS}/usr/sbin")
    assert found, "sshd is missing: run make prepare, or apt-get install openssh-server"
    key, public = keypair(folder / "key")
    _host, host_public = keypair(folder / "host")
    (folder / "authorized").write_text(f"{public}\n")
    (folder / "store").mkdir()
    port = free_port()
    lines = (
        f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder}/host", f"AuthorizedKeysFile {folder}/authorized",
        "PidFile none", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "UsePAM no",
        # Folders of tests lie below one that everybody may write.
        "StrictModes no", "Subsystem sftp internal-sftp", "ForceCommand internal-sftp",
    )  # fmt: skip
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    root = os.geteuid() == 0
    inside = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"] if root else []
    libraries = Path(found).resolve().parents[1] / "lib/x86_64-linux-gnu"
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(libraries)}
    user = pwd.getpwuid(NOBODY if root else os.geteuid()).pw_name
    argv = [*inside, found, "-D", "-e", "-f", f"{folder}/sshd_config"]
    with _running(argv, folder / "sshd.log", environment, port):
        known = f"[127.0.0.1]:{port} {host_public}"
        yield SftpStore(f"sftp://{user}@127.0.0.1:{port}/{folder}/store", folder / "store", key, known, port)


@contextmanager
def s3_store(folder: Path) -> Iterator[S3Store]:
    """moto, which lets one user in after the requests that make that user, and asks all others for their keys."""
    import boto3

    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(argv, folder / "moto.log", environment, port):
        url = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(f"{url}/moto-api/", timeout=60).close()
        iam = boto3.client(
            "iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="first", aws_secret_access_key="first"
        )
        iam.create_user(UserName="backup")
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="backup", PolicyName="s3", PolicyDocument=policy)
        made = iam.create_access_key(UserName="backup")["AccessKey"]
        keys = {"AWS_ACCESS_KEY_ID": made["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"]}
        yield S3Store(f"s3:{url}", keys)
