"""Makes a Python process believe that a folder is the whole machine, and that root runs it.

A simulated host's interpreter starts with this on its path. Absolute names in the places that modules look at are
answered below ``STAND_IN_ROOT``; owners are kept in a folder beside it, as only root could set them. Nothing else is
changed: the modules, and what they write, are the real ones.
"""

import builtins
import grp
import io
import os
import pwd
import subprocess
import sys

ROOT = os.environ.get("STAND_IN_ROOT", "")
OWNERS = ROOT + ".owners"
PLACES = (
    "/bin", "/boot", "/dev/accel", "/dev/infiniband", "/dev/kmsg", "/etc", "/lib", "/opt",
    "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var",
)  # fmt: skip
#: The process itself, and what the C library and Python read of the machine that runs the tests.
REAL = (
    "/proc/self", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/localtime", "/etc/ssl", "/etc/nsswitch.conf",
    "/etc/resolv.conf", "/usr/share/zoneinfo", "/usr/lib/ssl", "/usr/lib/python3",
    *os.environ.get("STAND_IN_REAL", "").split(":"), os.path.dirname(os.__file__),
)  # fmt: skip
_real = {
    name: getattr(os, name)
    for name in ("stat", "lstat", "fstat", "readlink", "open", "unlink", "replace", "rename", "mkdir", "write", "close")
}


def below(name: str, places) -> bool:
    return any(place and (name == place or name.startswith(place + "/")) for place in places)


def at(name):
    """Where a name really is."""
    if not isinstance(name, (str, bytes, os.PathLike)):
        return name  # a descriptor
    text = os.fsdecode(name)
    if not text.startswith("/"):
        return name
    plain = os.path.normpath(text)
    if not below(plain, PLACES) or below(plain, REAL):
        return name
    place = ROOT + text
    return os.fsencode(place) if isinstance(os.fspath(name), bytes) else place


def whole(name, dir_fd=None) -> str:
    """The full name of what a call means, in the folder of the test."""
    if isinstance(name, int):
        return _real["readlink"](f"/proc/self/fd/{name}")
    text = os.fsdecode(at(name))
    if dir_fd is not None and not text.startswith("/"):
        text = _real["readlink"](f"/proc/self/fd/{dir_fd}") + "/" + text
    if text.startswith("/proc/self/fd/"):
        number, *rest = text.removeprefix("/proc/self/fd/").split("/", 1)
        text = "/".join([_real["readlink"](f"/proc/self/fd/{number}"), *rest])
    return text


def placed(name, dir_fd=None):
    """Where a name in an open folder really is: below the root, though the folder may be the machine's own `/`."""
    if dir_fd is None or os.path.isabs(name):
        return at(name), dir_fd
    full = os.path.join(_real["readlink"](f"/proc/self/fd/{dir_fd}"), os.fsdecode(name))
    return (name, dir_fd) if at(full) == full else (at(full), None)


def note(name: str) -> str:
    return OWNERS + "/" + os.path.normpath(name).replace("%", "%25").replace("/", "%2F")


def chown(path, uid, gid, *, dir_fd=None, follow_symlinks=True):
    """Remember the owner, as the real call would need root."""
    name = whole(path, dir_fd)
    if follow_symlinks and not isinstance(path, int):
        name = os.path.realpath(name)
    _real["lstat"](name)
    before = owner(name) or (0, 0)
    after = [new if new != -1 else old for new, old in zip((uid, gid), before, strict=True)]
    with _open(note(name), "w", encoding="ascii") as stream:
        stream.write(" ".join(map(str, after)))


def owner(name: str):
    try:
        with _open(note(name), encoding="ascii") as stream:
            uid, gid = stream.read().split()
        return int(uid), int(gid)
    except OSError:
        return None


def named(real):
    def look_up(key):
        return next(
            (group for group in (RENDER, PROMETHEUS, *OTHERS) if key in (group.gr_name, group.gr_gid)), None
        ) or real(key)

    return look_up


#: Groups that this machine need not have: that of the cards' device files on Ubuntu 24.04, and those of packages.
RENDER = grp.struct_group(("render", "x", 992, []))
PROMETHEUS = grp.struct_group(("prometheus", "x", 993, []))
OTHERS = tuple(grp.struct_group((name, "x", number, [])) for name, number in (("slurm", 64030), ("munge", 994)))
#: Users that packages bring.
USERS = {each.gr_name: pwd.struct_passwd((each.gr_name, "x", each.gr_gid, each.gr_gid, "", "/", "")) for each in OTHERS}


def group_of(result, name: str) -> int:
    """A device file that is closed to others belongs to a group."""
    return RENDER.gr_gid if below(name, (ROOT + "/dev",)) and result.st_mode & 0o777 == 0o660 else 0


#: What a result gives by its place, which Python 3.13 takes in no other way.
IN_ORDER = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")


def as_root(result, name: str):
    """A file of the test's is one of root's, unless it was given away."""
    if not below(name, (ROOT,)):
        return result
    values = list(result)
    values[4], values[5] = owner(name) or (0, group_of(result, name))
    more = {key: getattr(result, key) for key in dir(result) if key.startswith("st_") and key not in IN_ORDER}
    return os.stat_result(values, more)


def stat(path, *, dir_fd=None, follow_symlinks=True):
    path, dir_fd = placed(path, dir_fd)
    result = _real["stat"](path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    return as_root(result, os.path.normpath(whole(path, dir_fd)))


def lstat(path, *, dir_fd=None):
    return stat(path, dir_fd=dir_fd, follow_symlinks=False)


def move(real):
    def moved(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
        given = owner(whole(src, src_dir_fd)) if below(whole(src, src_dir_fd), (ROOT,)) else None
        real(at(src), at(dst), src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        name = whole(dst, dst_dir_fd)
        if given:
            chown(name, *given)
        elif os.path.exists(note(name)):
            _real["unlink"](note(name))

    return moved


def redirected(real):
    def call(path=".", *arguments, **options):
        path, dir_fd = placed(path, options.pop("dir_fd", None))
        return real(path, *arguments, **options, **({} if dir_fd is None else {"dir_fd": dir_fd}))

    return call


def redirected_open(file, *arguments, **options):
    return _open(at(file), *arguments, **options)


class Popen(subprocess.Popen):
    """Programs of the host are started from its folder, and find the drafts there that they are to check."""

    def __init__(self, args, *arguments, **options):
        if isinstance(args, list):
            args = [at(each) if os.path.basename(os.fsdecode(each)).startswith(".") else each for each in args]
        if isinstance(args, (list, tuple)) and args and os.path.lexists(at(args[0])):
            args = [at(args[0]), *args[1:]]
        if options.get("cwd"):
            options["cwd"] = at(options["cwd"])
        super().__init__(args, *arguments, **options)


if ROOT:
    _open, _symlink, _link = io.open, os.symlink, os.link
    for each in (
        "listdir", "scandir", "readlink", "open", "access", "mkdir", "rmdir", "unlink", "remove", "chmod", "utime",
        "statvfs", "chdir", "truncate", "getxattr", "listxattr",
    ):  # fmt: skip
        if hasattr(os, each):
            setattr(os, each, redirected(getattr(os, each)))
    # What asks whether a call takes a dir_fd or descriptor asks by the function.
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        known |= {getattr(os, each) for each in ("open", "mkdir", "rmdir", "unlink", "chmod", "utime", "readlink",
                                                 "access", "listdir", "scandir")}  # fmt: skip
        known |= {stat, lstat, chown}
    os.supports_dir_fd.update({stat, lstat, chown})
    os.stat, os.lstat = stat, lstat
    os.fstat = lambda fd: as_root(_real["fstat"](fd), _real["readlink"](f"/proc/self/fd/{fd}"))
    os.chown = chown
    os.lchown = lambda path, uid, gid: chown(path, uid, gid, follow_symlinks=False)
    os.fchown = lambda fd, uid, gid: chown(fd, uid, gid)
    grp.getgrgid, grp.getgrnam = named(grp.getgrgid), named(grp.getgrnam)
    getpwnam = pwd.getpwnam
    pwd.getpwnam = lambda name: USERS.get(name) or getpwnam(name)
    os.rename, os.replace = move(_real["rename"]), move(_real["replace"])
    os.symlink = lambda src, dst, *rest, **options: _symlink(src, at(dst), *rest, **options)
    os.link = lambda src, dst, **options: _link(at(src), at(dst), **options)
    # Who does not become root.
    os.geteuid = os.getuid = os.getegid = os.getgid = lambda: int(os.environ.get("STAND_IN_UID", "0"))
    builtins.open = io.open = redirected_open
    subprocess.Popen = Popen
    if os.environ.get("STAND_IN_KERNEL"):
        _uname = os.uname()
        os.uname = lambda: os.uname_result((*_uname[:2], os.environ["STAND_IN_KERNEL"], *_uname[3:]))
    sys.dont_write_bytecode = True
    if len(sys.orig_argv) == 1 or "AnsiballZ_" in sys.orig_argv[-1]:
        # A module: what it would take from its archive, and compile at each start, is the controller's own Ansible.
        sys.path.append(os.environ["STAND_IN_ANSIBLE"])
        import ansible.module_utils.basic  # noqa: F401

        sys.path.pop()
