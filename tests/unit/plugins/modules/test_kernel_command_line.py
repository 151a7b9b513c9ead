"""kernel_command_line with made-up boot loader tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.modules import kernel_command_line

ARGUMENT_SPEC = ["iommu=pt", "intel_iommu=on"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cmdline").write_text("BOOT_IMAGE=/vmlinuz root=/dev/sda1 intel_iommu=on\n")
    (tmp_path / "bin").mkdir()

    def find(self: AnsibleModule, name: str, *arguments: Any) -> str | None:
        path = tmp_path / "bin" / name
        return str(path) if path.exists() else None

    monkeypatch.setattr(AnsibleModule, "get_bin_path", find)
    return tmp_path


def tool(host: Path, name: str, body: str) -> Path:
    path = host / "bin" / name
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {host}/calls\n{body}\n')
    path.chmod(0o755)
    return path


def calls(host: Path) -> list[str]:
    log = host / "calls"
    return [line.replace(f"{host}/bin/", "") for line in log.read_text().splitlines()] if log.exists() else []


def drop_in(host: Path) -> Path:
    return host / "etc/default/grub.d/90-gaudi3-scale.cfg"


def test_report_names_what_is_missing_and_changes_nothing(host: Path, run_module: Any) -> None:
    tool(host, "update-grub", "exit 0")
    result = run_module(kernel_command_line, root=str(host), arguments=ARGUMENT_SPEC)
    assert (result["changed"], result["missing"], result["reboot_needed"]) == (False, ["iommu=pt"], False)
    assert calls(host) == []
    assert not drop_in(host).exists()


def test_update_grub_runs_once(host: Path, run_module: Any) -> None:
    tool(host, "update-grub", "exit 0")
    options = {"root": str(host), "arguments": ARGUMENT_SPEC, "state": "present"}
    predicted = run_module(kernel_command_line, check=True, **options)
    assert predicted["changed"] is True
    assert calls(host) == []
    assert not drop_in(host).exists()
    result = run_module(kernel_command_line, **options)
    assert (result["changed"], result["reboot_needed"]) == (True, True)
    assert drop_in(host).read_text().splitlines()[1] == (
        'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt intel_iommu=on"'
    )
    again = run_module(kernel_command_line, **options)
    assert (again["changed"], again["reboot_needed"]) == (False, True)
    assert calls(host) == ["update-grub "]


def test_nothing_stays_when_update_grub_fails(host: Path, run_module: Any) -> None:
    tool(host, "update-grub", "echo 'no space left' >&2; exit 1")
    result = run_module(kernel_command_line, root=str(host), arguments=ARGUMENT_SPEC, state="present")
    assert result["failed"] is True
    assert result["msg"] == "update-grub ended with exit code 1 and said 'no space left': nothing was changed."
    assert not drop_in(host).exists()


def test_no_reboot_is_needed_once_the_kernel_has_them(host: Path, run_module: Any) -> None:
    tool(host, "update-grub", "exit 0")
    (host / "proc/cmdline").write_text("root=/dev/sda1 iommu=pt intel_iommu=on\n")
    result = run_module(kernel_command_line, root=str(host), arguments=ARGUMENT_SPEC, state="present")
    assert (result["missing"], result["reboot_needed"]) == ([], False)


@pytest.mark.parametrize("argument", ["iommu=pt quiet", 'a="b"', "$(reboot)", "-x", ""])
def test_arguments_that_would_need_quoting_are_refused(host: Path, run_module: Any, argument: str) -> None:
    result = run_module(kernel_command_line, root=str(host), arguments=[argument], state="present")
    assert result["failed"] is True
    assert result["msg"] == (
        f"kernel argument {argument!r} cannot be used: write one NAME or NAME=VALUE, without blanks and quotes."
    )


def test_grubby_gets_what_is_lacking(host: Path, run_module: Any) -> None:
    tool(
        host,
        "grubby",
        f"""case "$1" in
--info=DEFAULT) printf 'index=0\nkernel="/boot/vmlinuz"\nargs="ro quiet %s"\n' "$(cat {host}/added 2>/dev/null)";;
*) echo "$2" | sed 's/--args=//' > {host}/added;;
esac""",
    )
    options = {"root": str(host), "arguments": ARGUMENT_SPEC, "state": "present"}
    assert run_module(kernel_command_line, check=True, **options)["changed"] is True
    result = run_module(kernel_command_line, **options)
    assert result["changed"] is True
    assert run_module(kernel_command_line, **options)["changed"] is False
    assert [call for call in calls(host) if "info" not in call] == [
        "grubby --update-kernel=ALL --args=iommu=pt intel_iommu=on"
    ]


def test_a_host_without_a_known_boot_loader_tool(host: Path, run_module: Any) -> None:
    result = run_module(kernel_command_line, root=str(host), arguments=ARGUMENT_SPEC, state="present")
    assert result["failed"] is True
    assert result["msg"] == (
        "Neither update-grub nor grubby was found on this host: add the arguments iommu=pt intel_iommu=on to its boot "
        "loader by hand, or use state=reported."
    )
