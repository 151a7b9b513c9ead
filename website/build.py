"""Build the documentation site, from a checkout and without a network.

python -m website.build                  into build/docs
python -m website.build --zip FILE       and all of it into one file
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import yaml

from website import api, collection, finish, messages, plain, reference, repository, staging

OUTPUT = repository.BUILD / "docs"
STAGED = repository.BUILD / "docs-source"


class BuildError(Exception):
    """Sphinx found something wrong."""


def stage(folder: Path = STAGED) -> staging.Source:
    """The source of the whole site."""
    for each in (folder, folder.with_name(folder.name + "-files")):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    collection.write(folder / collection.FOLDER)
    shelf = [
        *reference.shelf(),
        (
            f"{collection.FOLDER}/index.rst",
            "Modules and roles",
            "every option of modules, roles and plugins",
        ),
        (f"{api.FOLDER}/index.md", "Python API", "the trainer's classes and functions for scripts of your own"),
    ]
    keywords = yaml.safe_load((Path(__file__).parent / "keywords.yml").read_text()) or {}
    files: dict[str, str | bytes] = {
        "_static/keywords.js": f"const SITE_KEYWORDS = {json.dumps(keywords)};\n"
        f"const SITE_MESSAGES = {json.dumps(messages.messages())};\n",
        "versions.json": json.dumps([repository.galaxy()["version"]]) + "\n",
    }
    return staging.stage(folder, {**reference.pages(), **api.pages(), **files}, shelf)


def build(output: Path = OUTPUT, folder: Path = STAGED) -> None:
    """Build it into a folder, which is replaced; BuildError for any warning of Sphinx."""
    source = stage(folder)
    shutil.rmtree(output, ignore_errors=True)
    environment = os.environ | {
        "GAUDI3_SITE_FILES": str(folder.with_name(folder.name + "-files")),
        "GAUDI3_SITE_SOURCES": json.dumps({page.name: page.source for page in source.pages.values()}),
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "0"),
    }
    doctrees = folder.with_name(folder.name + "-doctrees")
    shutil.rmtree(doctrees, ignore_errors=True)
    # fmt: off
    command: list[str | Path] = [
        sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html",
        "-c", Path(__file__).parent, "-d", doctrees, folder, output,
    ]
    # fmt: on
    if subprocess.run(command, env=environment, cwd=repository.ROOT, check=False).returncode:
        raise BuildError("The site has faults: see the warnings above.")
    finish.finish(output)
    plain.write(folder, output, source)
    for name in (".buildinfo", "objects.inv", ".doctrees"):
        (output / name).unlink(missing_ok=True)


def pack(output: Path, file: Path) -> None:
    """All of the site in one file, below a folder with its version's name; the same bytes for the same site."""
    name = repository.galaxy()["version"]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(output.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(f"{name}/{path.relative_to(output)}")
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the folder that is replaced")
    parser.add_argument("--zip", type=Path, help="all of it in this file, too")
    arguments = parser.parse_args()
    sys.path[:0] = [str(path) for path in repository.PACKAGES]
    started = time.monotonic()
    try:
        build(arguments.output, arguments.output.with_name(arguments.output.name + "-source"))
    except (BuildError, staging.StagingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.zip:
        pack(arguments.output, arguments.zip)
    size = sum(path.stat().st_size for path in arguments.output.rglob("*") if path.is_file())
    pages = len(list(arguments.output.rglob("*.html")))
    seconds = time.monotonic() - started
    print(f"{arguments.output}/index.html: {pages} pages, {size / 1e6:.1f} MB, in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
