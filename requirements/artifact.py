"""Build the collection from what git tracks, so that two builds of the same sources are the same bytes.

    python requirements/artifact.py . gaudi3-scale-0.1.0.tar.gz

A checkout that was used has more in it than its sources: variables with secrets, states and caches of Terraform,
environments. Git knows none of them. Times, owners and the order of files are not those of this machine either.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

#: The time of every file in the archive: 2000-01-01, in seconds since 1970.
TIME = 946684800


def tracked(checkout: Path) -> dict[str, bool]:
    """Files that git tracks and that are there, with whether they are executable."""
    command = ["git", "-C", str(checkout), "ls-files", "--stage", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = (line.partition("\t") for line in listed.split("\0") if line)
    return {name: about.startswith("100755") for about, _tab, name in lines if (checkout / name).is_file()}


def copy(checkout: Path, target: Path) -> None:
    for name, executable in tracked(checkout).items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkout / name, place)
        place.chmod(0o755 if executable else 0o644)


def sorted_list(files: dict[str, bytes]) -> None:
    """Put the list of files in order, which is the file system's, and its new digest into the manifest."""
    listed = json.loads(files["FILES.json"])
    listed["files"].sort(key=lambda entry: str(entry["name"]))
    files["FILES.json"] = json.dumps(listed, indent=True).encode()
    manifest = json.loads(files["MANIFEST.json"])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(files["FILES.json"]).hexdigest()
    files["MANIFEST.json"] = json.dumps(manifest, indent=True).encode()


def normal(built: Path, artifact: Path) -> None:
    """Write the archive again without what differs from machine to machine."""
    with tarfile.open(built) as archive:
        members = {member.name: member for member in archive}
        files = {name: found.read() for name, each in members.items() if (found := archive.extractfile(each))}
    sorted_list(files)
    with (
        artifact.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(members):
            about = tarfile.TarInfo(name)
            about.type, about.mode, about.mtime = members[name].type, members[name].mode & 0o755, TIME
            about.size = len(files.get(name, b""))
            archive.addfile(about, io.BytesIO(files.get(name, b"")))


def build(checkout: Path, artifact: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "source"), Path(folder, "output")
        copy(checkout, source)
        galaxy = [str(Path(sys.executable).with_name("ansible-galaxy")), "collection", "build"]
        subprocess.run([*galaxy, str(source), "--output-path", str(output)], check=True, stdout=subprocess.DEVNULL)
        (built,) = output.glob("*.tar.gz")
        normal(built, artifact)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
