"""``modprobe``, ``rmmod``, ``lsmod`` and ``modinfo`` for the simulated modules; other modules go to the real
tools."""

from __future__ import annotations

import os
import sys

from . import kernel, node, paths, store, sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DESCRIPTION_KEYS = ("version", "description", "depends")
_MODPROBE_FLAGS = {
    "-r": "remove",
    "--remove": "remove",
    "-v": "verbose",
    "--verbose": "verbose",
    "-q": "quiet",
    "--quiet": "quiet",
    "-n": "dry",
    "--dry-run": "dry",
    "--show": "dry",
    "-a": "all",
    "--all": "all",
    "-s": "syslog",
    "--syslog": "syslog",
    "-b": "blacklist",
    "--use-blacklist": "blacklist",
    "--first-time": "first",
}


def modprobe(arguments: Sequence[str]) -> int:
    """Load or unload modules by name."""
    words = [word for word in arguments if not word.startswith("-")]
    served = words and _served(words[0])
    if not served:
        return _real("modprobe", arguments, _not_found(words[0]) if words else "modprobe: ERROR: missing parameters")
    flags = set()
    for word in arguments:
        if word.startswith("-"):
            if word not in _MODPROBE_FLAGS:
                sys.stderr.write(f"modprobe: ERROR: option '{word}' is not simulated for {words[0]}\n")
                return 1
            flags.add(_MODPROBE_FLAGS[word])
    several = "all" in flags or "remove" in flags
    parameters = {} if several else dict(word.partition("=")[::2] for word in words[1:])
    names = [_plain(word) for word in (words if several else words[:1])]
    return _changing("modprobe", names, flags, lambda simulated: _modprobe_all(simulated, names, parameters, flags))


def _modprobe_all(
    simulated: node.Node, names: list[str], parameters: dict[str, str], flags: set[str]
) -> list[tuple[str, str]]:
    done: list[tuple[str, str]] = []
    for name in names:
        if "blacklist" in flags and name in blacklisted():
            continue
        if "first" in flags and simulated.loaded(name) != ("remove" in flags):
            state = "is not in kernel." if "remove" in flags else "already in kernel."
            raise kernel.KernelError(f"Module {name} {state}")
        if "dry" in flags:
            kernel.module_info(name)
            planned = [name] if "remove" in flags else [*kernel.dependencies(name), name]
        elif "remove" in flags:
            planned = kernel.unload(simulated, name)
        else:
            planned = kernel.load(simulated, name, {**configured_options(name), **parameters})
        done += [("rmmod" if "remove" in flags else "insmod", module) for module in planned]
    return done


def rmmod(arguments: Sequence[str]) -> int:
    """Unload modules, without their dependencies' help."""
    names = [_plain(word) for word in arguments if not word.startswith("-")]
    if not names or not _served(names[0]):
        return _real("rmmod", arguments, f"rmmod: ERROR: Module {names[0] if names else ''} is not currently loaded")

    def remove(simulated: node.Node) -> list[tuple[str, str]]:
        for name in names:
            if not simulated.loaded(name):
                raise kernel.KernelError(f"Module {name} is not currently loaded")
            kernel.remove(simulated, name)
        return []

    return _changing("rmmod", names, set(), remove)


def _changing(
    tool: str, names: list[str], flags: set[str], change: Callable[[node.Node], list[tuple[str, str]]]
) -> int:
    """Run a change under the lock; a refusal of the kernel is the tool's error."""
    if not paths.is_root():
        what = "remove module" if tool == "rmmod" else "remove" if "remove" in flags else "insert"
        name = names[0] if tool == "rmmod" else f"'{names[0]}'"
        sys.stderr.write(f"{tool}: ERROR: could not {what} {name}: Operation not permitted\n")
        return 1
    try:
        with store.Lock():
            done = change(node.Node.load())
    except (kernel.KernelError, store.StateError) as error:
        message = error.for_rmmod if isinstance(error, kernel.InUse) and tool == "rmmod" else str(error)
        fatal = tool != "rmmod" and (isinstance(error, (kernel.NotFound, kernel.InUse)) or "in kernel." in message)
        if not (isinstance(error, kernel.NotFound) and "quiet" in flags):
            sys.stderr.write(f"{tool}: {'FATAL' if fatal else 'ERROR'}: {message}\n")
        return 1
    if "verbose" in flags:
        for verb, module in done:
            print(verb, paths.at(kernel.module_path(module)) if verb == "insmod" else module)
    return 0


def lsmod(arguments: Sequence[str]) -> int:
    """List loaded modules."""
    print("Module                  Size  Used by")
    lines = (paths.read_text("/proc/modules") or "").splitlines()
    if not lines:
        lines = list(sysfs.proc_modules(node.Node.load()))
    for line in lines:
        name, size, count, held_by = line.split()[:4]
        print(f"{name:<19} {int(size):>8}  {count} {held_by.rstrip(',') if held_by != '-' else ''}".rstrip())
    return 0


def modinfo(arguments: Sequence[str]) -> int:
    """Show an installed module's fields."""
    field = None
    names = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-F", "--field") and rest:
            field = rest.pop(0)
        elif word in ("-n", "--filename"):
            field = "filename"
        else:
            names.append(word)
    names = [_of_file(name) for name in names]
    if not names or not _served(names[0]):
        return _real("modinfo", arguments, f"modinfo: ERROR: Module {names[0] if names else ''} not found.")
    for name in map(_plain, names):
        try:
            info = kernel.module_info(name)
        except kernel.NotFound:
            sys.stderr.write(f"modinfo: ERROR: Module {name} not found.\n")
            return 1
        except kernel.KernelError:  # an empty file
            sys.stderr.write(f"modinfo: ERROR: could not get modinfo from '{name}': Invalid argument\n")
            return 1
        shown = {
            "filename": kernel.module_path(name),
            **{key: info.get(key, "") for key in _DESCRIPTION_KEYS},
        }
        shown["name"] = name
        shown["vermagic"] = f"{paths.kernel_release()} SMP mod_unload modversions"
        if field is not None:
            if field in shown:
                print(shown[field])
            continue
        for key, value in shown.items():
            print(f"{key + ':':<16}{value}")
        for parameter in sysfs.PARAMETERS.get(name, {}):
            print(f"{'parm:':<16}{parameter}")
    return 0


def _of_file(name: str) -> str:
    """The module of an installed file, which may be given in the place of a name."""
    module = os.path.basename(name).partition(".ko")[0]
    return module if name == kernel.module_path(_plain(module)) else name


def blacklisted() -> set[str]:
    """Modules that /etc/modprobe.d keeps from loading on their own."""
    return {words[1] for words in _configuration() if words[0] == "blacklist"}


def configured_options(name: str) -> dict[str, str]:
    """Parameters that /etc/modprobe.d gives to a module."""
    found: dict[str, str] = {}
    for words in _configuration():
        if words[0] == "options" and words[1] == name:
            found.update(dict(word.partition("=")[::2] for word in words[2:]))
    return found


def _configuration() -> list[list[str]]:
    folder = "/etc/modprobe.d"
    try:
        names = sorted(os.listdir(paths.at(folder)))
    except OSError:
        return []
    lines = [
        line.split()
        for name in names
        if name.endswith(".conf")
        for line in (paths.read_text(f"{folder}/{name}") or "").splitlines()
    ]
    return [[words[0], _plain(words[1]), *words[2:]] for words in lines if len(words) > 1]


def _plain(name: str) -> str:
    """A module's name as the kernel writes it."""
    return name.replace("-", "_")


def _served(name: str) -> bool:
    return _plain(name).startswith("habanalabs") or _plain(name) in kernel.CORE


def _not_found(name: str) -> str:
    return f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{paths.kernel_release()}"


def _real(tool: str, arguments: Sequence[str], message: str) -> int:
    """Hand over to the real tool; where there is none, say what it would say of an unknown module."""
    if not paths.root():
        for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"):
            if os.access(f"{folder}/{tool}", os.X_OK):
                os.execv(f"{folder}/{tool}", [tool, *arguments])
    sys.stderr.write(message + "\n")
    return 1
