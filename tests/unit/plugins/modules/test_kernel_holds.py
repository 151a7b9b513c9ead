"""kernel_holds against the real dpkg and apt, on a database and a repository of the test's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.modules import kernel_holds

Run = Callable[..., dict[str, Any]]
OLD, NEW = "6.8.0-51", "6.8.0-60"
OLD_RHEL, NEW_RHEL = "5.14.0-427.13.1.el9_4", "5.14.0-427.40.1.el9_4"
META = ("linux-generic", "linux-image-generic")
BUILD_IT = (
    "the driver of 1.23.0-695 is not built for it. Install the kernel's headers, build the driver with 'dkms "
    "autoinstall -k 6.8.0-60-generic', and run the role again."
)


def stanzas(kernel: str) -> list[str]:
    """The packages of Ubuntu with which a kernel comes, as its repository has them."""
    version, image = f"{kernel}.{kernel[-2:]}", f"linux-image-{kernel}-generic"
    needs = {
        "linux-generic": f"linux-image-generic (= {version}), linux-headers-generic (= {version})",
        "linux-image-generic": f"{image} | linux-image-unsigned-{kernel}-generic, linux-firmware",
        "linux-headers-generic": f"linux-headers-{kernel}-generic",
        image: "",
        f"linux-headers-{kernel}-generic": "",
    }
    return [
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <n@example.com>\n"
        f"Description: a package\n{f'Depends: {depends}' + chr(10) if depends else ''}"
        for name, depends in needs.items()
    ]


class Node:
    """A package database, a repository and a folder of kernel modules."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.record = root / "etc/gaudi3-scale/kernel-holds"
        for folder in ("dpkg/updates", "dpkg/info", "lists/partial", "cache/archives/partial", "repository", "parts"):
            (root / folder).mkdir(parents=True)
        for name in ("dpkg/available", "dpkg/diversions", "dpkg/statoverride"):
            (root / name).touch()
        (root / "os-release").write_text('ID=ubuntu\nVERSION_ID="24.04"\n')
        firmware = "Package: linux-firmware\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.com>\n"
        self.firmware = firmware + "Description: a package\n"
        texts = "\n".join([*stanzas(OLD), self.firmware])
        (root / "dpkg/status").write_text(texts.replace("\nVersion", "\nStatus: install ok installed\nVersion"))
        (root / "apt.conf").write_text(
            f'Dir::State "{root}";\nDir::State::status "{root}/dpkg/status";\nDir::Cache "{root}/cache";\n'
            f'Dir::Etc::sourcelist "{root}/sources.list";\nDir::Etc::sourceparts "{root}/parts";\n'
            f'Dir::Etc::preferences "/nowhere";\nDir::Etc::preferencesparts "{root}/parts";\n'
            'APT::Architecture "amd64";\nAPT::Sandbox::User "root";\nAcquire::Languages "none";\n'
        )
        (root / "sources.list").write_text(f"deb [trusted=yes] file:{root}/repository ./\n")
        monkeypatch.setenv("APT_CONFIG", str(root / "apt.conf"))
        monkeypatch.setenv("DPKG_ADMINDIR", str(root / "dpkg"))
        self.offer(OLD)
        self.build(f"{OLD}-generic")

    def offer(self, *kernels: str) -> None:
        texts = [text for kernel in kernels for text in stanzas(kernel)]
        (self.root / "repository/Packages").write_text("\n".join([*texts, self.firmware]))
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)

    def build(self, kernel: str, folder_below: str = "updates/dkms") -> None:
        folder = self.root / "modules" / kernel / folder_below
        folder.mkdir(parents=True)
        (folder / "habanalabs.ko").write_text("module")

    def mark(self, word: str, *names: str) -> None:
        subprocess.run(["apt-mark", word, *names], check=True, capture_output=True)

    def held(self) -> list[str]:
        shown = subprocess.run(["apt-mark", "showhold"], check=True, capture_output=True, text=True)
        return shown.stdout.split()

    def recorded(self) -> list[str]:
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        return [line for line in lines if not line.startswith("#")]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


@pytest.fixture
def run(node: Node, run_module: Run) -> Run:
    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        places = {"record": str(node.record), "modules": str(node.root / "modules")}
        given = {"release": "1.23.0-695", "os_release": str(node.root / "os-release"), **places, **options}
        return run_module(kernel_holds, check=check, diff=True, **given)

    return call


def test_a_kernel_without_a_driver_is_held_back_until_it_is_built(node: Node, run: Run) -> None:
    node.offer(OLD, NEW)
    said = f"Kernel 6.8.0-60-generic is offered and held back (linux-generic, linux-image-generic): {BUILD_IT}"
    predicted = run(check=True)
    assert (node.held(), node.record.exists()) == ([], False)
    first = run()
    for each in (predicted, first):
        assert (each["changed"], each["hold"], each["remarks"]) == (True, [*META], [said])
        assert said in json.dumps(each["warnings"])
        assert each["diff"][0]["after"] == "linux-generic\nlinux-image-generic\n"
    assert (node.held(), node.recorded()) == ([*META], [*META])
    assert node.record.stat().st_mode & 0o777 == 0o644
    upgrade = subprocess.run(["apt-get", "--simulate", "dist-upgrade"], check=True, capture_output=True, text=True)
    assert NEW not in "".join(line for line in upgrade.stdout.splitlines() if line.startswith("Inst"))
    again = run()
    assert (again["changed"], again["remarks"]) == (False, [said])

    node.build(f"{NEW}-generic")
    assert run(check=True)["lift"] == [*META]
    assert node.held() == [*META]
    lifted = run()
    assert (lifted["lift"], lifted["held"], lifted["remarks"]) == ([*META], [], [])
    assert (node.held(), node.record.exists()) == ([], False)
    assert run()["changed"] is False


def test_what_is_offered_tomorrow_is_held_today(node: Node, run: Run) -> None:
    assert (run()["held"], run()["changed"]) == ([*META], False)
    node.offer(OLD, NEW)
    assert run()["changed"] is False


def test_a_kernel_that_the_matrix_forbids_is_held_though_its_driver_is_built(node: Node, run: Run) -> None:
    node.offer(OLD, "6.11.0-21")
    node.build("6.11.0-21-generic")
    found = run()
    assert found["hold"] == [*META]
    assert found["remarks"] == [
        "Kernel 6.11.0-21-generic is offered and held back (linux-generic, linux-image-generic): on Ubuntu 24.04 the "
        "drivers are for kernel 6.8, not for 6.11.0-21-generic (pages of 1.24.1 on docs.habana.ai, as quoted by "
        "bossdeep/gaudi2-practical-inference on 2026-09-25)."
    ]


def test_a_hold_of_the_site_is_neither_put_on_record_nor_lifted(node: Node, run: Run) -> None:
    node.offer(OLD, NEW)
    node.mark("hold", "linux-generic", "linux-firmware")
    assert run()["hold"] == ["linux-image-generic"]
    assert node.recorded() == ["linux-image-generic"]
    assert run(hold=False)["lift"] == ["linux-image-generic"]
    assert (node.held(), node.record.exists()) == (["linux-firmware", "linux-generic"], False)
    assert run(hold=False)["changed"] is False


def test_a_hold_that_apt_dropped_is_set_again(node: Node, run: Run) -> None:
    run()
    node.mark("unhold", "linux-image-generic")
    assert run(check=True)["hold"] == ["linux-image-generic"]
    assert (run()["hold"], node.held()) == (["linux-image-generic"], [*META])


def test_what_was_removed_leaves_the_record(node: Node, run: Run) -> None:
    run()
    status = node.root / "dpkg/status"
    kept = [each for each in status.read_text().split("\n\n") if "Package: linux-generic\n" not in each]
    status.write_text("\n\n".join(kept))
    assert (run(check=True)["changed"], run()["changed"], run()["changed"]) == (True, True, False)
    assert node.recorded() == ["linux-image-generic"]


@pytest.mark.parametrize("names", [("hold", "linux-generic"), ("unhold",)])
def test_a_run_that_is_killed_leaves_no_hold_without_a_record(
    node: Node, run: Run, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    """Before each call of apt-mark, and after it."""
    node.offer(OLD, NEW)
    if names[0] == "unhold":
        run()
        node.build(f"{NEW}-generic")
    genuine = AnsibleModule.run_command
    for early in (True, False):

        def killed(module: AnsibleModule, command: list[str], early: bool = early, **more: Any) -> Any:
            if command[1] == names[0]:
                if not early:
                    genuine(module, command, **more)
                raise SystemExit("killed")
            return genuine(module, command, **more)

        with monkeypatch.context() as patched:
            patched.setattr(AnsibleModule, "run_command", killed)
            with pytest.raises(ValueError):  # nothing was printed
                run()
        assert set(node.held()) <= set(node.recorded())
    run()
    assert set(node.held()) == set(node.recorded()) == ({*META} if names[0] == "hold" else set())


def test_a_mark_that_has_no_effect_is_said(node: Node, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = node.root / "bin"
    tools.mkdir()
    (tools / "apt-mark").write_text("#!/bin/sh\n")
    (tools / "apt-mark").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert run()["msg"] == (
        "apt-mark succeeded, and dpkg does not show it of linux-generic, linux-image-generic: look at 'dpkg "
        "--get-selections'."
    )


@pytest.mark.parametrize("busy", [1, 99])
def test_a_database_in_use_is_waited_for(node: Node, run: Run, monkeypatch: pytest.MonkeyPatch, busy: int) -> None:
    genuine, calls = AnsibleModule.run_command, []

    def used(module: AnsibleModule, command: list[str], **more: Any) -> Any:
        if command[1] == "hold":
            calls.append(command)
            if len(calls) <= busy:
                return 2, "", "dpkg: error: dpkg status database is locked by another process\n"
        return genuine(module, command, **more)

    monkeypatch.setattr(AnsibleModule, "run_command", used)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    found = run(timeout=120 if busy == 1 else 0)
    if busy == 1:
        assert (found["changed"], len(calls), node.held()) == (True, 2, [*META])
    else:
        assert found["msg"] == (
            "apt-mark hold failed for linux-generic, linux-image-generic (dpkg: error: dpkg status database is locked "
            "by another process): run it by hand on the node to see why."
        )


def test_a_record_of_somebody_else_is_refused(node: Node, run: Run) -> None:
    node.record.parent.mkdir(parents=True)
    node.record.write_text("linux generic\n")
    assert run(check=True)["msg"] == (
        f"{node.record} has the line 'linux generic' in the place of a package's name: correct it, or remove the file, "
        "after which what is held counts as held by the site."
    )
    assert node.held() == []
    node.record.unlink()
    node.record.mkdir()
    assert run()["msg"] == f"{node.record} cannot be read (Is a directory): see that it is a file, or remove it."


def test_a_node_without_apt_has_nothing_to_hold(node: Node, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda *_given, **_options: None)
    assert run()["changed"] is False


@pytest.fixture
def dnf(node: Node, run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A node of RHEL: rpm, dnf's list, and apt's programs, which say nothing of it."""
    (node.root / "os-release").write_text('ID="rhel"\nVERSION_ID="9.4"\n')
    rpm = node.root / "rpm"
    shown = "".join(f"{name}\\t{OLD_RHEL}.x86_64\\n" for name in ("kernel", "kernel-core"))
    rpm.write_text(f"#!/bin/sh\nprintf '{shown}package kernel-modules is not installed\\n'; exit 1\n")
    rpm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{node.root}:{os.environ['PATH']}")
    locks = node.root / "versionlock.list"
    locks.write_text("# of the site\nvim-minimal\n")
    locks.chmod(0o640)
    (node.root / "modules").rename(node.root / "ubuntu")

    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        lists = {"versionlock": str(locks), "versionlock_dnf5": str(node.root / "versionlock.toml")}
        return run(check, **lists, **options)

    return call


def test_dnf_may_install_kernels_that_have_the_driver(node: Node, dnf: Run) -> None:
    locks, old, new = node.root / "versionlock.list", OLD_RHEL, NEW_RHEL
    for kernel in (old, new):
        node.build(f"{kernel}.x86_64", "extra")
        before = locks.read_text()
        predicted = dnf(check=True)
        assert locks.read_text() == before
        done = dnf()
        lines = [f"kernel-0:{kernel}.*", f"kernel-core-0:{kernel}.*"]
        assert predicted["hold"] == done["hold"] == lines
        assert predicted["diff"][0]["after"] == done["diff"][0]["after"]
        assert set(node.recorded()) == set(done["held"])
        assert dnf()["changed"] is False
    assert locks.read_text().startswith("# of the site\nvim-minimal\nkernel-0:")
    assert (len(locks.read_text().splitlines()), locks.stat().st_mode & 0o777) == (6, 0o640)
    locks.write_text(locks.read_text().replace(f"kernel-0:{old}.*\n", ""))
    assert dnf()["hold"] == [f"kernel-0:{old}.*"]
    assert len(dnf(hold=False)["lift"]) == 4
    assert (locks.read_text(), node.record.exists()) == ("# of the site\nvim-minimal\n", False)


def test_a_dnf_without_a_list_of_locks_is_said(node: Node, dnf: Run) -> None:
    (node.root / "versionlock.list").unlink()
    found = dnf()
    assert (found["changed"], found["remarks"]) == (
        False,
        [
            f"Kernels are not held back, as dnf has no list of locks ({node.root}/versionlock.list): install "
            "python3-dnf-plugin-versionlock."
        ],
    )
    assert dnf(hold=False)["remarks"] == []


def program(node: Node, name: str, says: str) -> None:
    """A dnf that knows of one kernel."""
    path = node.root / name
    path.write_text(f'#!/bin/sh\n[ "$3" = repoquery ] || exit 2\necho {says}\n')
    path.chmod(0o755)


@pytest.mark.parametrize("names", [("dnf5",), ("dnf-3",), ("dnf5", "dnf-3")])
def test_the_kernel_that_is_offered_is_named(node: Node, dnf: Run, names: tuple[str, ...]) -> None:
    for name in names:
        program(node, name, f"{NEW_RHEL}.x86_64")
    if names == ("dnf5",):
        (node.root / "versionlock.list").unlink()
    node.build(f"{OLD_RHEL}.x86_64", "extra")
    said = (
        f"Kernel {NEW_RHEL}.x86_64 is offered and held back (kernel, kernel-core): the driver of 1.23.0-695 is not "
        "built for it. Install the kernel's headers, build the driver with 'dkms autoinstall -k "
        f"{NEW_RHEL}.x86_64', and run the role again."
    )
    assert dnf(check=True)["remarks"] == [said]
    first = dnf()
    assert (first["remarks"], said in json.dumps(first["warnings"])) == ([said], True)
    assert (dnf()["changed"], dnf()["remarks"], dnf(hold=False)["remarks"]) == (False, [said], [])
    node.build(f"{NEW_RHEL}.x86_64", "extra")
    assert dnf()["remarks"] == []


def test_dnf5_has_locks_of_its_own(node: Node, dnf: Run) -> None:
    program(node, "dnf5", f"{OLD_RHEL}.x86_64")
    four, five = node.root / "versionlock.list", node.root / "versionlock.toml"
    node.build(f"{OLD_RHEL}.x86_64", "extra")
    predicted = dnf(check=True)
    assert (five.exists(), node.record.exists()) == (False, False)
    done = dnf()
    names = ("kernel", "kernel-core")
    assert (
        done["hold"]
        == predicted["hold"]
        == [
            *(f"{name}-0:{OLD_RHEL}.*" for name in names),
            *(f"dnf5:{name}-0:{OLD_RHEL}" for name in names),
        ]
    )
    assert [each["after"] for each in done["diff"]] == [each["after"] for each in predicted["diff"]]
    assert f'value = "0:{OLD_RHEL}"\n' in five.read_text()
    assert (sorted(node.recorded()), dnf()["changed"]) == (done["held"], False)
    # A dnf5 that went takes its locks along, and a dnf 4 that went its own.
    (node.root / "dnf5").unlink()
    assert (dnf()["lift"], five.exists()) == ([f"dnf5:{name}-0:{OLD_RHEL}" for name in names], False)
    program(node, "dnf5", f"{OLD_RHEL}.x86_64")
    four.unlink()
    assert (dnf()["held"], dnf()["changed"]) == ([f"dnf5:{name}-0:{OLD_RHEL}" for name in names], False)
    assert len(dnf(hold=False)["lift"]) == 2
    assert (five.exists(), node.record.exists()) == (False, False)


def test_a_file_of_dnf5_that_it_passes_over_is_refused(node: Node, dnf: Run) -> None:
    program(node, "dnf5", f"{OLD_RHEL}.x86_64")
    five = node.root / "versionlock.toml"
    five.write_text('[[packages]]\nname = "vim"\n')
    said = f'{five} does not begin with version = "1.0", without which dnf5 passes over all of its locks: add that '
    assert dnf(check=True)["msg"].startswith(said)
    assert (five.read_text(), node.record.exists()) == ('[[packages]]\nname = "vim"\n', False)
