"""Where checkpoints go besides the nodes' disks: an S3-compatible store, or a directory that outlives the nodes.

step-00000050-8f14e45fceea167a-1f2e3d4c5b6a/__0_0.distcp ...     the files of the step, job and run
step-00000050-8f14e45fceea167a-1f2e3d4c5b6a/manifest.json        written last: its presence is the commit
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.files import create, draft, opened_folder, read_in

FOLDER = re.compile(r"step-(\d{8,})-(?:([0-9a-f]{16})-)?([0-9a-f]+)")
PART = 32 * 2**20
PART_ENDING = "part"
"""Of a file that is not whole yet."""


class Target(Protocol):
    """Files by name, a name being `folder/file`. Errors are whatever the transport raises."""

    url: str

    def sizes(self, folder: str = "") -> dict[str, int]:
        """All complete files, or those of a folder, with their sizes in bytes."""

    def put(self, path: Path, name: str) -> None:
        """Store a file; it appears whole or not at all."""

    def get(self, name: str, path: Path) -> None:
        """Fetch a file."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those that are gone do not matter."""

    def clean(self, folder: str) -> None:
        """Delete what a killed upload left of a folder and `sizes` does not show."""


def open_target(url: str, endpoint_url: str | None = None) -> Target:
    """The target of `checkpoint.target`: s3://bucket/prefix, or an absolute directory."""
    if url.startswith("s3://"):
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        return S3Target(bucket, prefix.strip("/"), endpoint_url)
    return DirectoryTarget(Path(url))


class DirectoryTarget:
    """A directory on a file system that outlives the nodes, in which others may write: no link in it is followed."""

    def __init__(self, root: Path) -> None:
        self.url = str(root)
        self._root = root

    def sizes(self, folder: str = "") -> dict[str, int]:
        found: dict[str, int] = {}
        if (self._root / folder).is_dir() and not (folder and (self._root / folder).is_symlink()):
            for path, _, names, handle in os.fwalk(os.path.realpath(self._root / folder)):
                below = Path(path).relative_to(os.path.realpath(self._root))
                for name in names:
                    try:
                        about = os.stat(name, dir_fd=handle, follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # another node has just removed or renamed it
                    if stat.S_ISREG(about.st_mode) and not name.endswith(f".{PART_ENDING}"):
                        found[(below / name).as_posix()] = about.st_size
        return found

    def put(self, path: Path, name: str) -> None:
        *folders, last = name.split("/")
        self._root.mkdir(parents=True, exist_ok=True)
        with (
            opened_folder(self._root, *folders, make=True) as folder,
            path.open("rb") as source,
            draft(folder, last, ending=PART_ENDING) as file,
        ):
            shutil.copyfileobj(source, file, 2**20)

    def get(self, name: str, path: Path) -> None:
        *folders, last = name.split("/")
        with (
            opened_folder(self._root, *folders) as folder,
            read_in(folder, last) as source,
            create(path) as file,
        ):
            shutil.copyfileobj(source, file, 2**20)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            *folders, last = name.split("/")
            with suppress(FileNotFoundError), opened_folder(self._root, *folders) as folder:
                os.unlink(last, dir_fd=folder)

    def clean(self, folder: str) -> None:
        shutil.rmtree(self._root / folder, ignore_errors=True)


class S3Target:
    """A prefix of a bucket. Credentials, region and profile come from boto3's own chain."""

    def __init__(self, bucket: str, prefix: str, endpoint_url: str | None = None) -> None:
        try:
            import boto3
            from boto3.s3.transfer import TransferConfig
            from botocore.config import Config
        except ImportError:
            raise ConfigError(
                f"checkpoint.target is in S3, but boto3 is not installed: {how_to_install('s3')}, or give a directory."
            ) from None
        self.url = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._transfer = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=4)
        retries: Any = {"mode": "standard", "max_attempts": 8}
        self._client: Any = boto3.client(
            "s3", endpoint_url=endpoint_url, config=Config(retries=retries, connect_timeout=10, read_timeout=60)
        )

    def sizes(self, folder: str = "") -> dict[str, int]:
        start = f"{self._prefix}{folder}/" if folder else self._prefix
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=start)
        found = [entry for page in pages for entry in page.get("Contents", ())]
        return {entry["Key"].removeprefix(self._prefix): int(entry["Size"]) for entry in found}

    def put(self, path: Path, name: str) -> None:
        """See `Target`; large files go in parts."""
        self._client.upload_file(str(path), self._bucket, self._prefix + name, Config=self._transfer)

    def get(self, name: str, path: Path) -> None:
        self._client.download_file(self._bucket, self._prefix + name, str(path), Config=self._transfer)

    def delete(self, names: Iterable[str]) -> None:
        """See `Target`; a manifest is deleted before the files it names."""
        ordered = sorted(names, key=lambda name: not name.endswith("/manifest.json"))
        for start in range(0, len(ordered), 1000):
            keys = [{"Key": self._prefix + name} for name in ordered[start : start + 1000]]
            answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            if answer.get("Errors"):
                raise OSError(f"{answer['Errors'][0].get('Code')} for {answer['Errors'][0].get('Key')}")

    def clean(self, folder: str) -> None:
        """See `Target`: the parts of uploads that were never completed, which are stored and paid for."""
        start = f"{self._prefix}{folder}/"
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=start)
        for upload in [upload for page in pages for upload in page.get("Uploads", ())]:
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"])
