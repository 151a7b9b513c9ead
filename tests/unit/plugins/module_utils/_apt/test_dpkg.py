"""What is read of dpkg, and waiting for its database."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import dpkg

LINES = (
    "linux-generic\t6.8.0-51\thold\tinstalled\tlinux-image-6.8.0-51-generic, kmod (>= 27~)\n"
    "gone\t1\tdeinstall\tconfig-files\t\nbash\t5.2\tinstall\tinstalled\t\nodd\n\n"
)


def test_what_is_installed_is_read_with_its_hold_and_what_it_needs() -> None:
    assert dpkg.read(LINES) == {
        "linux-generic": dpkg.Installed("6.8.0-51", True, "linux-image-6.8.0-51-generic, kmod (>= 27~)"),
        "bash": dpkg.Installed("5.2", False),
    }


def test_only_a_lock_is_waited_for() -> None:
    answers = [(2, "", "E: Unable to locate package x")]
    assert dpkg.mark(lambda _argv: answers.pop(), ["apt-mark", "hold", "x"], 60)[0] == 2
    assert dpkg.mark(lambda _argv: (2, "", "dpkg status database is locked"), ["apt-mark", "hold", "x"], 0)[0] == 2
