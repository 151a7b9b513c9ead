"""What the sections of a node report, from its files and from the texts of its programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from node_files import CARDS, Machine

import gaudi3_doctor as doctor
from gaudi3_doctor import card_sections, cards, software, tools
from gaudi3_doctor import machine as machines
from gaudi3_doctor.host import Options

DPKG = """\
#!/bin/sh
printf 'habanalabs-dkms\\t1.24.1-482\\tinstall\\t%s\\tthe driver\\n' "$STATE"
printf 'habanalabs-thunk\\t%s~jammy\\tinstall\\tinstalled\\ta library\\n' "$THUNK"
printf 'habanalabs-qual\\t\\tunknown\\tnot-installed\\t\\n'
printf 'grafana\\t12.1.0\\tinstall\\tinstalled\\tcharts\\n'
"""
RPM = """\
#!/bin/sh
printf 'habanalabs\\t1.24.1-482.el9\\tthe driver\\nepel-release\\t9-10.el9\\tmore packages\\n'
printf 'gpg-pubkey\\t1a2b-3c4d\\tA key <jane@example.org> public key\\n'
"""


@pytest.mark.parametrize(
    ("state", "thunk", "odd"),
    [
        ("installed", "1.24.1-482", []),
        ("half-configured", "1.24.1-482", ["not wholly installed: habanalabs-dkms"]),
        ("installed", "1.23.0-695", ["the vendor's packages are of 2 versions: 1.23.0-695, 1.24.1-482"]),
    ],
)
def test_packages_of_one_version_wholly_installed_are_fine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, state: str, thunk: str, odd: list[str]
) -> None:
    monkeypatch.setenv("STATE", state)
    monkeypatch.setenv("THUNK", thunk)
    machine.program("dpkg-query", DPKG)
    machine.program("dkms", "#!/bin/sh\necho 'habanalabs/1.24.1-482, 6.8.0: installed'\n")
    machine.write("/etc/apt/sources.list.d/grafana.list", "deb https://me:abc123@apt.grafana.com stable main\n")
    machine.write("/etc/apt/sources.list.d/other.list", "deb http://example.org stable main\n")
    machine.write("/var/log/apt/term.log", "Setting up habanalabs-dkms\nSetting up other\nSetting up grafana\n")
    machine.write("/var/lib/dkms/habanalabs/1.24.1/6.8.0/log/make.log", "CC [M] main.o\n")
    found = software.packages(machine.host, Options())
    assert found.odd == odd
    assert [each["name"] for each in found.data["packages"]] == ["habanalabs-dkms", "habanalabs-thunk", "grafana"]
    assert found.data["packages"][0]["version"] == "1.24.1-482" and found.data["packages"][0]["state"] == state
    assert list(found.data["sources"]) == ["/etc/apt/sources.list.d/grafana.list"]
    lines = ["Setting up habanalabs-dkms", "Setting up grafana"]
    assert found.data["installation_log"] == {"/var/log/apt/term.log": lines}
    assert found.data["dkms_status"]["output"] == "habanalabs/1.24.1-482, 6.8.0: installed\n"
    assert list(found.data["dkms_log"].values()) == ["CC [M] main.o\n"]


def test_packages_of_rpm_are_read_with_their_keys(machine: Machine) -> None:
    machine.program("rpm", RPM)
    machine.host.search = str(machine.bin)  # this machine's dpkg-query is not there
    (machine.bin / "sh").symlink_to("/bin/sh")
    found = software.packages(machine.host, Options())
    assert {each["name"]: each["version"] for each in found.data["packages"]} == {
        "habanalabs": "1.24.1-482.el9", "epel-release": "9-10.el9", "gpg-pubkey": "1a2b-3c4d",
    }  # fmt: skip
    assert found.odd == []


def test_no_package_manager_is_no_package(machine: Machine) -> None:
    machine.host.search = str(machine.bin)
    assert software.packages(machine.host, Options()).odd == ["no package of the vendor (habanalabs*) is installed"]


@pytest.mark.parametrize(
    ("version", "content", "odd"),
    [
        ("1.24.1-b336d5e", "module", []),
        ("1.24.1-b336d5e", "", ["empty module files: /lib/modules/6.8.0-9/updates/habanalabs.ko"]),
        (None, "module", ["the driver (module habanalabs) is not loaded"]),
        ("1.24.1-b336d5e", None, ["no module file of the vendor for the running kernel 6.8.0-9"]),
    ],
)
def test_modules_as_files_and_as_loaded(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, version: str | None, content: str | None, odd: list[str]
) -> None:
    monkeypatch.setattr(software.platform, "release", lambda: "6.8.0-9")
    machine.program("modinfo", "#!/bin/sh\necho vermagic: 6.8.0-9\n")
    if version is not None:
        machine.write("/sys/module/habanalabs/version", f"{version}\n")
        machine.write("/sys/module/habanalabs/parameters/timeout_locked", "30\n")
    if content is not None:
        machine.write("/lib/modules/6.8.0-9/updates/habanalabs.ko", content)
    machine.write("/lib/modules/6.8.0-9/kernel/other.ko", "x")
    machine.write("/lib/firmware/habanalabs/gaudi3/boot.bin", "12345")
    machine.write("/etc/modprobe.d/own.conf", "options habanalabs timeout_locked=30\n")
    found = software.modules(machine.host, Options())
    assert found.odd == odd
    loaded = {"habanalabs": {"version": version, "parameters": {"timeout_locked": "30"}}} if version else {}
    assert found.data["loaded"] == loaded
    assert found.data["firmware"] == [{"path": "/lib/firmware/habanalabs/gaudi3/boot.bin", "bytes": 5}]
    assert found.data["texts"] == {"/etc/modprobe.d/own.conf": "options habanalabs timeout_locked=30\n"}
    if content:
        assert found.data["files"][0]["modinfo"] == "vermagic: 6.8.0-9\n" and found.data["files"][0]["bytes"] == 6


@pytest.mark.parametrize(
    ("modules", "code", "odd"),
    [
        (("json", "no_such_module"), "", []),
        (("json", "spoiled"), "raise OSError('no libSynapse.so')", ["import spoiled fails: OSError: no libSynapse"]),
        (("json", "spoiled", "csv"), "import os; os._exit(7)", ["the import of spoiled ended the process (exit"]),
    ],
)  # fmt: skip
def test_each_import_of_the_jobs_python_is_tried(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, modules: tuple[str, ...], code: str, odd: list[str]
) -> None:
    monkeypatch.setattr(software, "IMPORTS", modules)
    monkeypatch.setattr(software, "DISTRIBUTIONS", ("pytest", "no-such-distribution"))
    (machine.bin / "spoiled.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(machine.bin))
    found = software.python(machine.host, Options(pythons=("/nowhere/python", "jobs-python")))
    assert found.not_tried == "there is no Python at /nowhere/python or jobs-python"
    machine.program("jobs-python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    found = software.python(machine.host, Options(pythons=("/nowhere/python", "jobs-python")))
    assert found.data["versions"] == {"pytest": pytest.__version__}
    missing = f"{found.data['interpreter']} has no torch and no habana-torch-plugin"
    assert [sentence[: len(start)] for sentence, start in zip(found.odd, [*odd, missing], strict=True)] == [
        *odd,
        missing,
    ]
    assert found.data["imports"][0]["module"] == "json" and found.data["imports"][0]["seconds"] >= 0


def test_nothing_is_imported_beside_a_release_that_does_harm(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(software, "IMPORTS", ("colorsys",))
    about = tmp_path / "packages/lightning-2.6.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning\nVersion: 2.6.2\n")
    machine.program("jobs-python", f'#!/bin/sh\nPYTHONPATH={about.parent} exec {sys.executable} "$@"\n')
    found = software.python(machine.host, Options(pythons=("jobs-python",)))
    assert found.data["imports"] == [] and found.data["versions"]["lightning"] == "2.6.2"
    (odd,) = found.odd
    assert "lightning 2.6.2 is installed, which steals credentials as soon as it is imported" in odd


def test_a_python_that_says_nothing_is_odd(machine: Machine) -> None:
    python = machine.program("silent", "#!/bin/sh\necho 'no such option' >&2; exit 2\n")
    found = software.python(machine.host, Options(pythons=("silent",)))
    assert found.odd == [f"{python} did not answer (exit code 2: no such option)"]


@pytest.mark.parametrize(
    ("pages", "secure", "odd"),
    [
        (64000, 0, []),
        (0, 0, ["no huge pages are set aside"]),
        (8, 1, ["Secure Boot is on: the kernel loads only modules signed with an enrolled key"]),
    ],
)
def test_the_machine_under_the_cards(machine: Machine, pages: int, secure: int, odd: list[str]) -> None:
    machine.write("/proc/meminfo", f"MemTotal: 1056000000 kB\nHugePages_Total: {pages}\nHugePages_Free: {pages}\n")
    machine.write("/etc/os-release", 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\nHOME_URL="x"\n')
    machine.write("/proc/cpuinfo", "model name : Xeon 6\nphysical id : 0\nmodel name : Xeon 6\nphysical id : 1\n")
    machine.write("/sys/devices/system/node/node0/cpulist", "0")
    machine.write(machines._EFI_SECURE_BOOT, f"\6\0\0\0{chr(secure)}")
    machine.write("/etc/security/limits.d/20-gaudi.conf", "* hard memlock unlimited\n")
    machine.write("/etc/security/limits.d/other.conf", "x")
    found = machines.machine(machine.host, Options())
    assert found.odd == odd
    assert found.data["system"] == {"ID": "ubuntu", "VERSION_ID": "24.04", "PRETTY_NAME": "Ubuntu 24.04.2 LTS"}
    assert found.data["memory"]["HugePages_Free"] == str(pages) and found.data["memory"]["MemFree"] is None
    processors = {name: found.data["processors"][name] for name in ("model", "sockets", "numa_nodes")}
    assert processors == {"model": ["Xeon 6"], "sockets": 2, "numa_nodes": 1}
    assert found.data["limit_files"] == {"20-gaudi.conf": "* hard memlock unlimited\n"}
    assert found.data["secure_boot"] is bool(secure)


LOG = (
    "usb 1-1: new\nhabanalabs[7]: segfault at 0 error 4 in a\nhabanalabs 0000:19:00.0: loaded\n"
    "habanalabs 0000:19:00.0: heartbeat timeout\nEXT4-fs error\n"
)


def test_of_the_kernel_log_only_the_drivers_lines_are_kept(machine: Machine) -> None:
    machine.program("dmesg", "#!/bin/sh\necho 'Operation not permitted' >&2; exit 1\n")
    machine.program("journalctl", f"#!/bin/sh\nprintf '{LOG}'\n")
    found = machines.kernel_log(machine.host, Options())
    assert found.data == {
        "lines": 2,
        "first": ["habanalabs 0000:19:00.0: loaded", "habanalabs 0000:19:00.0: heartbeat timeout"],
        "last": [],
    }
    assert found.odd == [
        "1 lines of the kernel log speak of errors, the last: habanalabs 0000:19:00.0: heartbeat timeout"
    ]
    machine.program("journalctl", "#!/bin/sh\necho 'No journal files' >&2; exit 1\n")
    why = machines.kernel_log(machine.host, Options()).not_tried
    assert why == "the kernel log cannot be read (exit code 1: No journal files): ask as root"


@pytest.mark.parametrize(
    "line",
    [
        "habanalabs fail[7]: segfault at 0 error 4 in a", "habanalabs fail[7] bad frame in rt_sigreturn frame:7",
        "traps: habanalabs fail[7] trap invalid opcode ip:7 in habanalabs error",
        "habanalabs fail (7) used greatest stack depth: 11000 bytes left",
        "INFO: task habanalabs fail:7 blocked for more than 120 seconds.",
        "habanalabs fail/7: potentially unexpected fatal signal 11.",
        "coredump: 7(habanalabs fail): Unsafe core_pattern",
        "process '/home/user/habanalabs error' started with executable stack",
        "CPU: 1 Comm: habanalabs fail Not tainted",
        "Habanalabs fail invoked OOM-killer: gfp_mask=0xcc0", "audit: type=1701 exe=\"/home/user/habanalabs error\"",
    ],
)  # fmt: skip
def test_the_kernels_words_about_a_process_are_not_the_drivers(machine: Machine, line: str) -> None:
    machine.program("dmesg", f"#!/bin/sh\ncat <<'END'\n[    2.500000] {line}\nEND\n")
    found = machines.kernel_log(machine.host, Options())
    assert (found.data["lines"], found.odd) == (0, [])


def test_hl_smi_is_timed_and_refused_fields_are_found_one_by_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root tries it as other users, who do not reach the test's folder
    found = tools.hl_smi(machine.host, Options(quick=True))
    assert list(found.data["csv"]["refused"]) == ["ecc.errors.hbm.sram.critical"]
    assert found.odd == ["hl-smi refuses 1 fields: ecc.errors.hbm.sram.critical"]
    assert {name: len(times) for name, times in found.data["timings"].items()} == dict.fromkeys(
        ("-Q", "-L", "-n ports", "-n link"), 2
    )
    assert found.data["csv_without_units"]["output"] == "247\n"


def test_slow_and_refused_hl_smi_is_odd(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "SLOW", -1.0)
    monkeypatch.setattr(tools, "_timings", lambda host, options, ask: {"-L": [0.1, 0.2]})
    monkeypatch.setattr(tools, "_as_users", lambda host, options, program: {"trainer": {"failure": "exit code 1: no"}})
    found = tools.hl_smi(machine.host, Options())
    assert found.odd[0] == "hl-smi takes more than -1 s (-L 0.2 s): raise hpu_exporter_timeout"
    assert found.odd[2] == "hl-smi does not work as trainer (exit code 1: no)"
    machine.program("hl-smi", "#!/bin/sh\necho 'Could not access driver' >&2; exit 3\n")
    assert tools.hl_smi(machine.host, Options()).odd == ["hl-smi fails: exit code 3: Could not access driver"]
    (machine.bin / "hl-smi").unlink()
    assert tools.hl_smi(machine.host, Options()).not_tried == "there is no hl-smi on the path"


def test_who_is_asked_to_run_hl_smi(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root asks the jobs' user and one without rights; here nobody is changed to."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tools, "user_named", lambda name: None if name == "absent" else tools.User(name, 0, 0, ()))
    program = str(machine.bin / "hl-smi")
    assert list(tools._as_users(machine.host, Options(user="absent"), program)) == ["nobody"]
    found = tools._as_users(machine.host, Options(user="trainer"), program)
    assert {name: (each["failure"], each["lines"]) for name, each in found.items()} == {
        "trainer": ("", 2), "nobody": ("", 2),
    }  # fmt: skip


def test_firmware_that_differs_between_cards_is_odd(machine: Machine) -> None:
    machine.program("hl-fw-loader", "#!/bin/sh\necho usage\n")
    found = tools.firmware(machine.host, Options())
    assert found.data["sysfs"] == {address: {"preboot_btl_ver": "Preboot hl-1.24.1"} for address in CARDS}
    assert found.data["hl_smi"]["output"] == "--fw-versions\n" and found.data["loader_help"]["output"] == "usage\n"
    assert found.odd == []
    machine.write(f"{cards.PCI}/{CARDS[1]}/preboot_btl_ver", "Preboot hl-1.23.0\n")
    assert tools.firmware(machine.host, Options()).odd == ["the cards differ in preboot_btl_ver"]


def test_the_script_of_the_ports_is_asked_only_what_changes_nothing(machine: Machine) -> None:
    assert tools.ports_script(machine.host, Options()).not_tried == "manage_network_ifs.sh is not installed"
    script = "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"
    machine.write(script, '#!/bin/sh\necho "asked $*"; test "$1" != --status\n').chmod(0o755)
    found = tools.ports_script(machine.host, Options())
    outputs = {form: found.data[form]["output"] for form in found.data if form.startswith("-")}
    assert outputs == {form: f"asked {form}\n" for form in ("--status", "--check-pfc", "-v", "-h")}
    assert found.data["script"] == script and found.odd == ["manage_network_ifs.sh --status ends with exit code 1"]


def test_power_is_read_in_three_ways_and_from_the_driver(machine: Machine) -> None:
    machine.write(f"{cards.PCI}/{CARDS[0]}/hwmon/hwmon3/power1_input", "247000000\n")
    machine.write(f"{cards.PCI}/{CARDS[0]}/hwmon/hwmon3/temp1_input", "40000\n")
    found = tools.power(machine.host, Options())
    assert {name: found.data[name]["output"] for name in ("table", "csv", "log")} == {
        "table": "|   0  HL-325L 247W |\n", "csv": "247 W\n", "log": "-q -d POWER\n",
    }  # fmt: skip
    assert found.data["hwmon"] == {CARDS[0]: {"hwmon3/power1_input": "247000000"}, CARDS[1]: {}} and found.odd == []
    machine.program("hl-smi", '#!/bin/sh\ntest "$1" != -q || { echo none >&2; exit 4; }\n')
    assert tools.power(machine.host, Options()).odd == ["hl-smi's log fails: exit code 4: none"]


def test_the_whole_report_names_nobody(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sections at once: what is wrong with a bare folder fails none, and what is private stays out."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.program(
        "dmesg", "#!/bin/sh\necho 'habanalabs 0000:19:00.0: node17 serial: AO99887766 mac b0:fd:0b:01:02:03'\n"
    )
    machine.write("/etc/profile.d/habanalabs.sh", "export HABANA_LOGS=/home/jane/logs\nexport API_KEY=abc123\n")
    machine.write("/proc/cmdline", "root=UUID=0e8a1b2c-1111-2222-3333-0123456789ab iommu=pt\n")
    found: dict[str, Any] = doctor.examine(Options(quick=True), machine.host)
    assert list(found["sections"]) == [section.key for section in doctor.SECTIONS]
    assert [key for key, each in found["sections"].items() if each["state"] == "failed"] == []
    assert {each["why"] for each in found["sections"].values() if each.get("why", "").startswith("computes")} == {
        card_sections.ASK
    }
    text = json.dumps(found)
    assert [word for word in ("node17", "AO998", "b0:fd", "jane", "abc123", "0e8a1b2c") if word in text] == []
    assert "iommu=pt" in text


@pytest.mark.parametrize(
    ("text", "odd", "data"),
    [
        (None, [], None),
        ("", ["is empty, which is neither layer 2 nor layer 3"], [True, False, 0, 0]),
        ("{}", ["is not of the shape that the collective library reads"], [False, False, 0, 0]),
        ('{"NIC_NET_CONFIG": [{"NIC_MAC": "B0:FD:0B:01:02:03"}]}', [], [False, True, 1, 0]),
        (
            '{"NIC_NET_CONFIG": [{"NIC_MAC": "b0:fd:0b:01:02:03"}, {"NIC_MAC": "06:ff:ff:ff:00:04"}]}',
            ["has 1 addresses that no port of this node has"],
            [False, True, 2, 1],
        ),
    ],
)
def test_a_file_of_other_cards_addresses_is_said_without_an_address(
    machine: Machine, text: str | None, odd: list[str], data: list[Any] | None
) -> None:
    if text is not None:
        machine.write(cards.GAUDINET, text)
    found = cards.cards(machine.host, Options())
    assert found.odd == [f"{cards.GAUDINET} {said}" for said in odd]
    kept = found.data["addresses_file"]
    assert data == (kept and [kept[name] for name in ("empty", "readable", "addresses", "strange")])


def test_links_and_counters_of_each_card_are_asked_for_by_port(machine: Machine) -> None:
    found = tools.hl_smi(machine.host, Options(quick=True)).data["ports"]
    assert list(found) == list(CARDS)
    assert found[CARDS[0]]["link"]["output"] == f"-n link -i {CARDS[0]} -P 1\n"
    assert found[CARDS[1]]["stats"]["output"] == f"-n stats -i {CARDS[1]} -P 1\n"


@pytest.mark.parametrize(
    "line", ["Loading of module with unavailable key is rejected", "Loading of unsigned module is rejected"]
)
def test_the_kernels_refusal_of_a_module_is_in_the_report(machine: Machine, line: str) -> None:
    machine.program("dmesg", f"#!/bin/sh\necho '[    2.500000] {line}'\n")
    assert machines.kernel_log(machine.host, Options()).data["first"] == [f"[    2.500000] {line}"]
