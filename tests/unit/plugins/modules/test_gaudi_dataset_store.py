"""A set from S3: moto plays the store, and the real rclone reads it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._data import remote
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_dataset

from .test_gaudi_dataset import KEY, make, tree

TOOLS = Path(__file__).resolve().parents[4] / ".cache/tools/usr/bin/rclone"
SECRETS = {"access_key_id": "the-key-of-the-store", "secret_access_key": "the-secret-of-the-store"}


@pytest.fixture(scope="module")
def rclone() -> str:
    found = str(TOOLS) if TOOLS.exists() else shutil.which("rclone")
    assert found, "rclone is missing: make prepare"
    return found


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bring(run_module: Any, tmp_path: Path, rclone: str, store: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Brings the set of the bucket; what the machine has of other accounts must not matter."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-somebody-else")
    monkeypatch.setenv("AWS_CA_BUNDLE", "/no/such/file")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def run(key: str = f"corpora/prepared/{KEY}", endpoint: str = store, **options: Any) -> dict[str, Any]:
        told = {"type": "s3", "provider": "Other", "endpoint": endpoint}
        given = {"source": key, "path": str(tmp_path / "local"), "remote": told, "remote_secrets": SECRETS}
        result: dict[str, Any] = run_module(gaudi_dataset, **given, rclone_executable=rclone, **options)
        return result

    return run


@pytest.fixture
def uploaded(tmp_path: Path, store: str) -> Path:
    import boto3

    # The machine's own settings of other accounts are not the test's.
    client = boto3.client(
        "s3",
        endpoint_url=store,
        region_name="us-east-1",
        verify=False,
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    client.create_bucket(Bucket="corpora")
    source = make(tmp_path / "mnt" / KEY)
    for path in source.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "corpora", f"prepared/{KEY}/{path.relative_to(source)}")
    return source


def test_a_set_comes_from_s3_and_a_cut_copy_is_resumed(
    bring: Any, uploaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted = bring(check=True, diff=True)
    assert not (tmp_path / "local").exists()
    draft = tmp_path / f"local/.{KEY}.part"
    draft.mkdir(parents=True)
    (draft / "shard-00000.bin.part").write_bytes((uploaded / "shard-00000.bin").read_bytes()[:1000])
    read: list[tuple[str, int]] = []
    real = remote.Rclone.blocks
    monkeypatch.setattr(
        remote.Rclone, "blocks", lambda self, file, start: read.append((file, start)) or real(self, file, start)
    )
    done = bring(diff=True)
    assert (predicted, done["copied"]) == (done, 2 * 3016 + 2)
    assert ("shard-00000.bin", 1000) in read and ("shard-00000.bin", 0) not in read
    assert tree(tmp_path / "local" / KEY) == tree(uploaded)
    assert bring()["changed"] is False
    said = str(done)
    assert not any(secret in said for secret in SECRETS.values())


def test_a_store_that_has_no_set_or_does_not_answer_is_said(bring: Any, uploaded: Path, tmp_path: Path) -> None:
    said = " is not in the object store: has gaudi3-train prepare ended, and was all uploaded?"
    assert bring("corpora/prepared/nothing")["msg"] == f"corpora/prepared/nothing/index.json{said}"
    assert bring("nobucket/nothing")["msg"] == f"nobucket/nothing/index.json{said}"
    refused = bring(endpoint="http://127.0.0.1:1")["msg"]
    assert refused.startswith(f"corpora/prepared/{KEY}: ") and "connection refused" in refused
    assert refused.endswith("; what was copied stays, and the next run resumes.")
    assert not (tmp_path / "local").exists()


def test_secrets_are_in_the_environment_alone() -> None:
    own = {"PATH": "/bin", "AWS_PROFILE": "other", "RCLONE_CONFIG": "/other"}
    assert remote.environment({"type": "s3", "env_auth": False}, {"secret_access_key": "x"}, own) == {
        "PATH": "/bin",
        "RCLONE_CONFIG_SOURCE_TYPE": "s3",
        "RCLONE_CONFIG_SOURCE_ENV_AUTH": "false",
        "RCLONE_CONFIG_SOURCE_SECRET_ACCESS_KEY": "x",
    }
    assert os.environ.get("RCLONE_CONFIG_SOURCE_TYPE") is None
