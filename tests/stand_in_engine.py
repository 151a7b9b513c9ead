"""A container engine without containers: images are names in a folder, and what is run is run here."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

#: ``run`` takes the options that this collection gives, sets the variables, and runs the command behind the image.
PROGRAM = """#!{python} -IS
import os, subprocess, sys

FOLDER = {folder!r}
words = sys.argv[1:]
with open(FOLDER + "/calls", "a") as stream:
    stream.write(" ".join(words) + "\\n")


def place(name):
    return FOLDER + "/images/" + name.replace("/", "%")


if words[:2] == ["image", "inspect"]:
    try:
        print(open(place(words[-1])).read())
    except OSError:
        sys.exit("Error: no such image")
elif words[0] == "pull":
    if os.path.exists(FOLDER + "/refuses"):
        sys.exit("Trying to pull\\nError: initializing source: the registry is on fire")
    os.makedirs(FOLDER + "/images", exist_ok=True)
    name = "0123456789abcdef" if words[-1].startswith("oci:") else words[-1]
    with open(place(name), "w") as stream:
        stream.write("0123456789abcdef")
    print("0123456789abcdef")
elif words[0] == "tag":
    os.rename(place(words[1]), place(words[2]))
elif words[0] == "untag":
    pass
elif words[0] == "run":
    end = words.index("--entrypoint=")
    if not os.path.exists(place(words[end + 1])):
        sys.exit(125)
    env = {{"PATH": os.environ["PATH"], "IN_CONTAINER": "1"}}
    for word in words[:end]:
        if word.startswith("--env="):
            name, equals, value = word[6:].partition("=")
            env[name] = value if equals else os.environ[name]
    command = words[end + 2:]
    if command[0] == "python3":
        command[0] = {image_python!r}
    sys.exit(subprocess.run(command, env=env).returncode)
else:
    sys.exit("not expected: " + " ".join(words))
"""


def make(program: Path, folder: Path, image_python: str = sys.executable) -> Path:
    """An engine's program, which keeps its images and its calls in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program.parent.mkdir(parents=True, exist_ok=True)
    python = Path(sys.executable).resolve()
    program.write_text(PROGRAM.format(python=python, folder=str(folder), image_python=image_python))
    program.chmod(0o755)
    return program


def calls(folder: Path) -> list[list[str]]:
    """What the engine was asked."""
    path = folder / "calls"
    return [shlex.split(line) for line in path.read_text().splitlines()] if path.exists() else []


def pulled(folder: Path, image: str, content: str = "0123456789abcdef") -> None:
    """The engine has an image."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "images" / image.replace("/", "%")).write_text(content)


def image_python(folder: Path, **packages: str) -> Path:
    """The Python of an image, with empty packages of these versions."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", folder], check=True)
    for name, version in packages.items():
        give(folder, name, version)
    return folder / "bin/python"


def give(image: Path, name: str, version: str, *modules: str) -> None:
    """Put an empty package into an image, in the place of another version."""
    (packages,) = image.glob("lib/*/site-packages")
    for old in packages.glob(f"{name}-*.dist-info"):
        (old / "METADATA").unlink()
        old.rmdir()
    for module in modules or (name,):
        (packages / module).mkdir(exist_ok=True)
        (packages / module / "__init__.py").touch()
    about = packages / f"{name}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
