"""Puts a host back as it was before the last call, and does things to it: disturb.py HOST [ACTS].

HOST is the folder of a host, ACTS a list in JSON of lists of an act and what it takes, such as ["rm", PATH]. A path is
one of the host, may have `*` in it, and may lead out of its root. Runs on the controller, where a host is a folder.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Host:
    """The folder of a host, beside which lies what it had before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saved = folder.with_name(folder.name + "-before")

    def restore(self) -> None:
        """Undo the last call. Services have been started since."""
        undo = self.saved / "undo.json"
        for number, path in enumerate(map(Path, json.loads(undo.read_text()) if undo.exists() else [])):
            if os.path.lexists(path):
                remove(path)
            before = self.saved / str(number)
            if os.path.lexists(before):
                shutil.move(before, path)
        shutil.rmtree(self.saved, ignore_errors=True)
        self.saved.mkdir()
        now = time.monotonic() * 1e6
        for unit in (self.folder / "units").iterdir():
            change(unit, ActiveEnterTimestampMonotonic=now, StateChangeTimestampMonotonic=now)

    def keep(self, *paths: Path) -> None:
        """Have the next call put these back."""
        undo = self.saved / "undo.json"
        kept = json.loads(undo.read_text()) if undo.exists() else []
        for number, path in enumerate(paths, len(kept)):
            if path.is_dir() and not path.is_symlink():
                shutil.copytree(path, self.saved / str(number), symlinks=True)
            elif os.path.lexists(path):
                shutil.copy2(path, self.saved / str(number), follow_symlinks=False)
        undo.write_text(json.dumps([*kept, *map(str, paths)]))

    def paths(self, pattern: str) -> list[Path]:
        """The paths of a pattern, of which there is at least one."""
        place = os.path.normpath(f"{self.folder}/root/{pattern}")
        found = [*Path("/").glob(place.lstrip("/"))]
        if not found:
            sys.exit(f"{self.folder} has no {pattern}")
        return found

    def owner(self, path: Path) -> Path:
        """Where a stand-in notes the owner of a file."""
        return self.folder / "root.owners" / str(path).replace("%", "%25").replace("/", "%2F")


def change(path: Path, **values: Any) -> None:
    """Change a file of JSON; None takes a key out."""
    found = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not None}))


def to_files(act: Callable[..., object]) -> Callable[..., None]:
    """An act on each of the files of a pattern, the last of the words."""

    def on(host: Host, *words: str) -> None:
        *more, last = words
        host.keep(*host.paths(last))
        for path in host.paths(last):
            act(path, *more)

    return on


def remove(path: Path) -> None:
    """A file, a link or a folder."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def touch(path: Path) -> None:
    """Later than every process was started."""
    time.sleep(0.05)
    os.utime(path)


def own(host: Host, name: str, owner: str = "1000 1000") -> None:
    """Give a file to another user and group."""
    (path,) = host.paths(name)
    host.keep(host.owner(path))
    host.owner(path).write_text(owner)


def bring(host: Host, source: str, target: str) -> None:
    """Copy each file of a folder into another one."""
    (folder,) = host.paths(target)
    for path in host.paths(f"{source}/*"):
        host.keep(folder / path.name)
        shutil.copy(path, folder / path.name)


def package(host: Host, name: str) -> None:
    """Take a package out."""
    host.keep(host.folder / "packages.json")
    change(host.folder / "packages.json", **{name: None})


def unit(host: Host, name: str, key: str, value: str) -> None:
    """Change what systemd has of a unit."""
    path = host.folder / "units" / f"{name}.service.json"
    host.keep(path)
    change(path, **{key: bool(value) if key == "enabled" else value})


ACTS: dict[str, Callable[..., None]] = {
    "rm": to_files(remove),
    "chmod": to_files(lambda path, mode: path.chmod(int(mode, 8))),
    "put": to_files(lambda path, text: path.write_text(f"{text}\n")),
    "append": to_files(lambda path, text: path.write_text(f"{path.read_text()}{text}\n")),
    "set": to_files(lambda path, key, value: change(path, **{key: json.loads(value)})),
    "cut": to_files(lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))),
    "touch": to_files(touch),
    "own": own,
    "bring": bring,
    "package": package,
    "unit": unit,
}


def task(host: Path, acts: list[list[str]]) -> dict[str, Any]:
    """A task of the controller that restores the host of this folder, and does these acts."""
    return {
        "name": f"Disturb {acts}",
        "ansible.builtin.command": {"argv": [sys.executable, __file__, str(host), json.dumps(acts)]},
        "delegate_to": "localhost",
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", "ansible_connection": "local"},
    }


def main() -> None:
    """Restore, and act."""
    host = Host(Path(sys.argv[1]))
    host.restore()
    for name, *words in json.loads(sys.argv[2]) if len(sys.argv) > 2 else []:
        ACTS[name](host, *words)


if __name__ == "__main__":
    main()
