"""Builds the trainer's image with podman or docker, and keeps its digest and what it is made of.

The base is named with its digest, so that a later build is of the same. Nothing of the controller gets into the image
but the wheel and the list of requirements.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "containers" / "trainer"
REQUIREMENTS = ROOT / "roles/pytorch/files/requirements.txt"
SBOM = "/usr/share/gaudi3-scale/sbom.cdx.json"
_PINNED = re.compile(r"[a-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}")
_TAG = re.compile(r"[a-z0-9][a-z0-9._:/-]*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def problem(base: str, tag: str, engine: list[str], requirements: Path, output: Path) -> str:
    """Why an image cannot be built of these, in one sentence; empty where it can."""
    if not _PINNED.fullmatch(base):
        return (
            f"The base is {base!r}, without a digest: write it as REGISTRY/NAME:TAG@sha256:DIGEST, with the digest "
            "that `podman image inspect --format {{.Digest}}` shows of what you have tried."
        )
    if not _TAG.fullmatch(tag):
        return f"The tag is {tag!r}: write it as REGISTRY/NAME:TAG, in small letters but for the tag."
    if not engine:
        return "--engine is empty: give podman or docker."
    if not shutil.which(engine[0]):
        return f"{engine[0]} is not installed: install it, or name another one with --engine."
    if not requirements.is_file():
        return f"--requirements is {requirements}, which is no file: give a list with hashes, or leave it out."
    if output.exists() and not output.is_dir():
        return f"--output is {output}, which is no folder: give another one."
    return ""


def wheel(folder: Path) -> str:
    """Build the trainer's wheel into a folder; its version."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT / "trainer")], check=True)
    (made,) = folder.glob("gaudi3_scale-*.whl")
    return made.name.split("-")[1]


def build(
    base: str, tag: str, output: Path, engine: list[str], python: str, index: str, requirements: Path
) -> dict[str, str]:
    """Build the image; its record, which `output` has beside what it is made of. CalledProcessError of the engine.

    The index is a secret of the one step that needs it, as an argument would stay in the image's history.
    """
    with tempfile.TemporaryDirectory() as place:
        context, secret = Path(place) / "context", Path(place) / "index"
        (context / "wheels").mkdir(parents=True)
        version = wheel(context / "wheels")
        for name in ("install.py", "sbom.py"):
            shutil.copy(FILES / name, context / name)
        shutil.copy(requirements, context / "requirements.txt")
        given = {"BASE": base, "PYTHON": python, "VERSION": version}
        arguments = [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]
        file = ["--file", str(FILES / "Containerfile")]
        if index:
            secret.touch(0o600)
            secret.write_text(index, encoding="utf-8")
            arguments += ["--secret", f"id=index,src={secret}"]
        subprocess.run([*engine, "build", "--tag", tag, *file, *arguments, str(context)], check=True)
    _copy_out(tag, output / "sbom.cdx.json", engine)
    asked = [*engine, "image", "inspect", "--format", "{{.Id}}", tag]
    number = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip().removeprefix("sha256:")
    record = {"image": tag, "id": f"sha256:{number}", "base": base, "version": version}
    record["sbom_sha256"] = hashlib.sha256((output / "sbom.cdx.json").read_bytes()).hexdigest()
    return record


def _copy_out(tag: str, target: Path, engine: list[str]) -> None:
    """Take the bill of materials out of the image, of which nothing runs."""
    made = subprocess.run([*engine, "create", tag], check=True, capture_output=True, text=True).stdout.strip()
    try:
        subprocess.run([*engine, "cp", f"{made}:{SBOM}", str(target)], check=True)
    finally:
        subprocess.run([*engine, "rm", made], check=True, stdout=subprocess.DEVNULL)


def push(tag: str, output: Path, engine: list[str]) -> str:
    """Push the image; the digest that its registry has, by which nodes and manifests name it."""
    if Path(engine[0]).name == "podman":
        subprocess.run([*engine, "push", "--digestfile", str(output / "digest"), tag], check=True)
        return (output / "digest").read_text(encoding="utf-8").strip()
    subprocess.run([*engine, "push", tag], check=True)
    # An image that went elsewhere, too, has a digest for each place, in no order.
    asked = [*engine, "image", "inspect", "--format", '{{join .RepoDigests "\\n"}}', tag]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    repository = tag.rpartition(":")[0]
    return next(digest for name, _at, digest in (each.partition("@") for each in said) if name == repository)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m containers.build", description=__doc__)
    parser.add_argument("--base", required=True, help="the vendor's image, with its digest")
    parser.add_argument("--tag", required=True, help="name of the image, with its registry")
    parser.add_argument("--output", type=Path, default=ROOT / "build/image", help="folder of the record")
    parser.add_argument("--engine", default="podman", help="podman or docker, with options of its own")
    parser.add_argument("--python", default="python3", help="Python in the base which has PyTorch")
    parser.add_argument(
        "--index", default="", help="package index in place of pip's own; no trace of it stays in the image"
    )
    parser.add_argument(
        "--requirements", type=Path, default=REQUIREMENTS, help="what is installed where the base lacks it"
    )
    parser.add_argument("--push", action="store_true", help="push it, and record the registry's digest")
    given = parser.parse_args(arguments)
    engine = given.engine.split()
    if said := problem(given.base, given.tag, engine, given.requirements, given.output):
        print(said, file=sys.stderr)
        return 2
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(
            f"--output is {given.output}, which cannot be made ({error.strerror}): give another one.", file=sys.stderr
        )
        return 2
    try:
        record = build(given.base, given.tag, given.output, engine, given.python, given.index, given.requirements)
        if given.push:
            record["digest"] = push(given.tag, given.output, engine)
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} ended with exit code {error.returncode}: see what it said above.", file=sys.stderr)
        return 1
    (given.output / "image.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
