"""Stand-ins for ``update-grub`` and ``grubby``, and what the kernel is started with by what they wrote.

The real tools ask which disk ``/`` is on, and a container's is on none. The stand-ins lie at the real paths. As with
the real ones, ``update-grub`` lets a shell read the settings (GNU GRUB manual, "Simple configuration"; the folder is
Debian's) and writes ``grub.cfg``, and ``grubby`` changes an entry of the Boot Loader Specification. Both write one
entry, without a disk.
"""

from __future__ import annotations

import os
import subprocess
import sys

from . import paths, strictness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GRUB = "/boot/grub/grub.cfg"
ENTRY = "/boot/loader/entries/gaudi3-simulator.conf"
_TITLE = "gaudi3-simulator"
_SETTINGS = """\
set -e
unset GRUB_CMDLINE_LINUX GRUB_CMDLINE_LINUX_DEFAULT
for file in "$1/etc/default/grub" "$1"/etc/default/grub.d/*.cfg; do
  if [ -e "$file" ]; then . "$file"; fi
done
echo "$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"
"""
_NO_ROOT = "only root can write below /boot"


def options() -> str:
    """What the boot loader hands to the kernel."""
    if not strictness.is_on("boot-loader-config"):
        return _settings()[0]
    for path, word in ((ENTRY, "options"), (GRUB, "linux")):
        for line in (paths.read_text(path) or "").splitlines():
            if line.split()[:1] == [word]:
                return " ".join(line.partition(" ro")[2].split())
    return ""


def update_grub(arguments: Sequence[str]) -> int:
    """Write GRUB's configuration from its settings; left as it is where a shell does not read them."""
    if arguments:
        return _refuse("update-grub", f"{' '.join(arguments)} is not simulated")
    if not paths.is_root():
        return _refuse("update-grub", _NO_ROOT)
    found, error = _settings()
    if error:
        return _refuse("update-grub", error)
    lines = [
        "# Written by the simulator's stand-in for update-grub.",
        f"menuentry '{_TITLE}' {{",
        f"\tlinux /boot/vmlinuz-{paths.kernel_release()} ro {found}".rstrip(),
        "}",
    ]
    _write(GRUB, lines)
    return 0


def grubby(arguments: Sequence[str]) -> int:
    """Show the one entry, or add and remove arguments of its kernel."""
    given = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name not in ("--info", "--update-kernel", "--args", "--remove-args") or not (equals or words):
            return _refuse("grubby", f"{word} is not simulated")
        given[name] = value if equals else words.pop(0)
    kernel = given.get("--info") or given.get("--update-kernel")
    if kernel not in ("ALL", "DEFAULT"):
        return _refuse("grubby", "a call without --info or --update-kernel of ALL or DEFAULT is not simulated")
    have = ["ro", *_entry()]
    if "--info" in given:
        # In the form of the real one; it has no lines of a disk and its kernel's files.
        rows = (f'kernel="/boot/vmlinuz-{paths.kernel_release()}"', f'args="{" ".join(have)}"', f'title="{_TITLE}"')
        print("\n".join(("index=0", *rows)))
        return 0
    if not paths.is_root():
        return _refuse("grubby", _NO_ROOT)
    added = given.get("--args", "").split()
    keys = {word.partition("=")[0] for word in added}
    gone = given.get("--remove-args", "").split()
    kept = [
        word
        for word in have
        if word.partition("=")[0] not in keys and word not in gone and word.partition("=")[0] not in gone
    ]
    lines = [
        "# Written by the simulator's stand-in for grubby.",
        f"title {_TITLE}",
        f"linux /boot/vmlinuz-{paths.kernel_release()}",
        f"options {' '.join([*kept, *added])}",
    ]
    _write(ENTRY, lines)
    return 0


def _entry() -> list[str]:
    """The arguments of the entry, but for the first."""
    for line in (paths.read_text(ENTRY) or "").splitlines():
        if line.startswith("options "):
            return [word for word in line.split()[1:] if word != "ro"]
    return []


def _settings() -> tuple[str, str]:
    """The arguments in GRUB's settings, and what a shell finds wrong with them."""
    asked = subprocess.run(
        ["/bin/sh", "-c", _SETTINGS, "sh", paths.root()], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        said = asked.stderr.strip().splitlines()
        return "", said[-1] if said else f"the settings end with exit code {asked.returncode}"
    return " ".join((asked.stdout.splitlines() or [""])[-1].split()), ""


def _write(path: str, lines: Sequence[str]) -> None:
    os.makedirs(os.path.dirname(paths.at(path)), exist_ok=True)
    paths.write_atomically(path, "\n".join(lines) + "\n")


def _refuse(tool: str, why: str) -> int:
    sys.stderr.write(f"{tool}: {why}\n")
    return 1
