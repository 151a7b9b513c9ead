"""Who holds a card, which card a process gets, and what the card file tells of it."""

from __future__ import annotations

import fcntl
import importlib
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import HERE, environment
from forks import Child, Forks

Run = Callable[..., subprocess.CompletedProcess[str]]
Hold = Callable[..., Child]
ROOT = HERE.parents[2]
USE = "import torch; torch.ones(3, device='hpu').sum(); print('used')"
HELD = "synStatus=20 [Device already acquired] Device acquire failed"
FAILED = "synStatus=26 [Generic failure] Device acquire failed"
ABSENT = "synStatus=8 [Device not found] Device acquire failed"
FIELDS = ("format", "pid", "in_use", "highest", "reset_end")


def fields(path: Path) -> dict[str, int]:
    """The card file, read by a process that holds no card: closing it would give up a lock of this one's."""
    return dict(zip(FIELDS, struct.unpack("<5Q", path.read_bytes()[:40]), strict=True))


def holder(path: Path) -> int:
    """The process that holds the card, as every tool asks; 0 for none."""
    with path.open("rb+") as file:
        query = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, query))
    return 0 if kind == fcntl.F_UNLCK else pid


@pytest.fixture
def hold(forks: Forks) -> Iterator[Hold]:
    """Start a process that holds a card and some numbers on it until it is told to end."""
    started: list[Child] = []

    def hold(elements: int = 250, **more: str) -> Child:
        code = f"import torch; kept = torch.ones({elements}, device='hpu'); print('held', flush=True); released()"
        started.append(forks.start(code, environment(**more)))
        started[-1].until("held")
        return started[-1]

    yield hold
    for one in started:
        one.kill()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Card files of a machine of this test's own."""
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_CARDS", str(tmp_path / "cards"))
    for name in ("HLS_MODULE_ID", "HABANA_VISIBLE_MODULES", "WORLD_SIZE", "LOCAL_RANK", "RANK"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cards"


def last(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join(line for line in done.stderr.splitlines() if "synStatus" in line)


@pytest.mark.parametrize(
    ("cards", "module", "visible"), [(1, None, None), (1, "0", "0"), (4, "2", "2,3"), (3, "1", "0,1,2")]
)
def test_a_held_card_is_refused_to_a_second_process(
    cards: int, module: str | None, visible: str | None, folder: Path, hold: Hold, run: Run
) -> None:
    more = {"GAUDI3_HPU_SIMULATOR_DEVICES": str(cards)}
    more |= {"HLS_MODULE_ID": module} if module else {}
    more |= {"HABANA_VISIBLE_MODULES": visible} if visible else {}
    first = hold(**more)
    done = run(USE, **more)
    assert done.returncode == 1, "two processes use one card"
    assert f"RuntimeError: {HELD}." in last(done)
    assert f"process {first.pid}" in done.stderr, "the refusal names the holder"
    first.end()
    assert run(USE, **more).stdout == "used\n"


def test_the_card_file_tells_the_holder_and_its_bytes(folder: Path, hold: Hold) -> None:
    first = hold(1000, HLS_MODULE_ID="5", GAUDI3_HPU_SIMULATOR_DEVICES="6")
    assert oct(folder.stat().st_mode) == "0o40700"
    file = folder / "accel5"
    assert file.stat().st_size == 64
    assert holder(file) == first.pid
    seen = fields(file)
    assert (seen["format"], seen["pid"], seen["in_use"], seen["reset_end"]) == (1, first.pid, 4000, 0)
    assert seen["highest"] >= 4000
    first.end()
    assert (holder(file), fields(file)["pid"]) == (0, 0), "released in order"


def test_a_killed_holder_frees_its_card_and_leaves_its_number(folder: Path, hold: Hold, run: Run) -> None:
    """Where no reset comes between; with one the number stays, too."""
    one = {
        "GAUDI3_HPU_SIMULATOR_DEVICES": "1",
        "GAUDI3_SIMULATOR_STRICTNESS": "card-resets-after-unclean-death=off",
    }
    first = hold(**one)
    first.kill()
    assert (holder(folder / "accel0"), fields(folder / "accel0")["pid"]) == (0, first.pid)
    assert run(USE, **one).stdout == "used\n"


def test_nothing_takes_a_card_before_it_is_used(folder: Path, run: Run) -> None:
    code = """
import torch, os, sys
print(torch.hpu.is_available(), torch.hpu.device_count(), torch.hpu.is_initialized())
torch.manual_seed(1), torch.randn(3, requires_grad=True).sum().backward()
print(os.path.exists(os.environ["GAUDI3_HPU_SIMULATOR_CARDS"]))
torch.hpu.get_device_properties()
print(os.listdir(os.environ["GAUDI3_HPU_SIMULATOR_CARDS"]), torch.hpu.is_initialized())
"""
    done = run(code, GAUDI3_HPU_SIMULATOR_DEVICES="3")
    assert done.stdout == "True 3 False\nFalse\n['accel0'] True\n", done.stderr


def test_processes_take_free_cards_until_there_is_none(folder: Path, hold: Hold, run: Run) -> None:
    two = {"GAUDI3_HPU_SIMULATOR_DEVICES": "2"}
    first, second = hold(**two), hold(**two)
    assert [holder(folder / name) for name in ("accel0", "accel1")] == [first.pid, second.pid]
    assert HELD in last(run(USE, **two))


def test_visible_modules_are_counted_and_the_local_rank_chooses_among_them(folder: Path, run: Run) -> None:
    code = """
import os, torch
from habana_frameworks.torch.distributed import hccl
hccl.initialize_distributed_hpu()  # as its import does
torch.ones(1, device="hpu")
print(torch.hpu.device_count(), os.environ["HLS_MODULE_ID"], torch.empty(1, device="hpu").device)
print(sorted(os.listdir(os.environ["GAUDI3_HPU_SIMULATOR_CARDS"])))
"""
    ranks = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}
    assert run(code, HABANA_VISIBLE_MODULES="2,3", **ranks).stdout == "2 3 hpu:0\n['accel3']\n"
    assert run(code, HABANA_VISIBLE_MODULES="7,0,4", **ranks).stdout == "3 0 hpu:0\n['accel0', 'accel3']\n"
    done = run(code, HABANA_VISIBLE_MODULES="6", **ranks)
    assert "AssertionError" in done.stderr and "HABANA_VISIBLE_MODULES" in done.stderr


def test_the_import_of_hccl_chooses_the_module(folder: Path, fresh: Run) -> None:
    code = "import os, habana_frameworks.torch.distributed.hccl; print(os.environ['HLS_MODULE_ID'])"
    ranks = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "HABANA_VISIBLE_MODULES": "5,4"}
    assert fresh(code, **ranks).stdout == "4\n"


def test_the_local_rank_is_the_module_and_another_card_stands_in_on_one_node(
    folder: Path, hold: Hold, run: Run
) -> None:
    ranks = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "3", "HLS_MODULE_ID": "3"}
    first = hold(GAUDI3_HPU_SIMULATOR_DEVICES="8", **ranks)
    assert holder(folder / "accel3") == first.pid
    second = hold(GAUDI3_HPU_SIMULATOR_DEVICES="8", **ranks)
    assert holder(folder / "accel0") == second.pid, "all cards may be used, so a free one stands in"
    assert HELD in last(run(USE, GAUDI3_HPU_SIMULATOR_DEVICES="4", **{**ranks, "WORLD_SIZE": "16"}))


def test_a_module_that_is_not_there_is_not_found(folder: Path, run: Run) -> None:
    for more in ({"HABANA_VISIBLE_MODULES": "1,2"}, {"WORLD_SIZE": "16"}):
        assert ABSENT in last(run(USE, HLS_MODULE_ID="6", GAUDI3_HPU_SIMULATOR_DEVICES="4", **more))


def test_a_forked_child_has_no_card(folder: Path, run: Run) -> None:
    code = """
import os, torch
kept = torch.ones(1000, device="hpu")
child = os.fork()
if not child:
    del kept
    try:
        torch.ones(1, device="hpu")
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(torch.hpu.memory_allocated())
"""
    assert run(code, GAUDI3_HPU_SIMULATOR_DEVICES="2").stdout == f"{HELD}.\n4000\n"


def test_a_folder_of_somebody_elses_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("open", "link"):
        done = run(USE, GAUDI3_HPU_SIMULATOR_CARDS=str(tmp_path / name))
        assert done.returncode == 1 and f"{tmp_path / name} is not a folder of this user's alone" in done.stderr


# --- on a node ---


@pytest.fixture
def node(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a simulated node with three cards, whose module ids are 6, 0 and 3."""
    (tmp_path / "var/lib/gaudi3-simulator").mkdir(parents=True)
    (tmp_path / "var/lib/gaudi3-simulator/state.json").write_text("{}")
    for index, module in enumerate((6, 0, 3)):
        device = tmp_path / f"sys/class/accel/accel{index}/device"
        device.mkdir(parents=True)
        (device / "status").write_text("Operational\n")
        (device / "module_id").write_text(f"{module}\n")
        for place in ("dev/accel", "run/gaudi3-simulator/cards"):
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / f"accel{index}").touch()
    monkeypatch.setenv("GAUDI3_SIMULATOR_ROOT", str(tmp_path))
    monkeypatch.setenv("GC_KERNEL_PATH", sys.executable)
    return tmp_path


def test_a_nodes_module_chooses_the_card_and_its_device_file_stays_open(node: Path, hold: Hold) -> None:
    first = hold(HLS_MODULE_ID="3")
    assert holder(node / "run/gaudi3-simulator/cards/accel2") == first.pid
    opened = {os.path.realpath(link) for link in Path(f"/proc/{first.pid}/fd").iterdir()}
    assert str(node / "dev/accel/accel2") in opened
    assert str(node / "dev/accel/accel0") not in opened


@pytest.mark.parametrize(("module", "index"), [("6", 0), ("0", 1)])
@pytest.mark.parametrize("status", ["In reset", "Malfunction", ""])
def test_a_card_that_is_not_operational_is_not_acquired(
    module: str, index: int, status: str, node: Path, run: Run
) -> None:
    (node / f"sys/class/accel/accel{index}/device/status").write_text(f"{status}\n")
    done = run(USE, HLS_MODULE_ID=module, HABANA_VISIBLE_MODULES="0,3,6")
    assert f"RuntimeError: {FAILED}." in last(done), f"a card with the status {status!r} is used"
    assert run(USE, HLS_MODULE_ID=module).stdout == "used\n", "another card stands in where every card may be used"
    for other in range(3):
        (node / f"sys/class/accel/accel{other}/device/status").write_text("In reset\n")
    assert FAILED in last(run(USE))


@pytest.mark.parametrize("more", [{}, {"HLS_MODULE_ID": "3"}])
def test_no_card_is_acquired_where_the_whole_node_refuses(more: dict[str, str], node: Path, run: Run) -> None:
    (node / "run/gaudi3-simulator/acquire-status").write_text("of another release\n")
    done = run(USE, **more)
    assert FAILED in last(done)
    assert "is 'of another release'" in done.stderr


def test_a_card_without_its_files_is_not_acquired(node: Path, run: Run) -> None:
    (node / "run/gaudi3-simulator/cards/accel2").unlink()
    assert FAILED in last(run(USE, HLS_MODULE_ID="3", HABANA_VISIBLE_MODULES="3"))
    (node / "dev/accel/accel0").unlink()
    assert ABSENT in last(run(USE, HLS_MODULE_ID="6", HABANA_VISIBLE_MODULES="6"))


def test_a_card_that_resets_is_not_acquired_before_its_time(node: Path, run: Run) -> None:
    only = {"HLS_MODULE_ID": "3", "HABANA_VISIBLE_MODULES": "3"}
    end = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    file = node / "run/gaudi3-simulator/cards/accel2"
    file.write_bytes(struct.pack("<8Q", 1, 77, 0, 0, end + 3600 * 10**9, 0, 0, 0))
    assert FAILED in last(run(USE, **only))
    file.write_bytes(struct.pack("<8Q", 1, 77, 0, 0, end, 0, 0, 0))
    assert run(USE, **only).stdout == "used\n"
    assert fields(file)["reset_end"] == 0


def test_a_killed_holders_card_resets_first_where_that_is_asked_for(folder: Path, hold: Hold, run: Run) -> None:
    more = {
        "GAUDI3_HPU_SIMULATOR_DEVICES": "1",
        "GAUDI3_SIMULATOR_STRICTNESS": "card-resets-after-unclean-death=on",
        "GAUDI3_HPU_SIMULATOR_RESET": "3",
    }
    hold(**more).kill()
    assert FAILED in last(run(USE, **more))
    deadline = time.monotonic() + 60
    while run(USE, **more).stdout != "used\n":
        assert time.monotonic() < deadline
    assert run(USE, **more).stdout == "used\n", "a release in order needs no reset"


def test_a_job_that_starts_again_at_once_gets_its_card(folder: Path, hold: Hold, run: Run) -> None:
    more = {"GAUDI3_HPU_SIMULATOR_DEVICES": "1", "GAUDI3_HPU_SIMULATOR_RESET": "2"}
    hold(**more).kill()
    assert FAILED in last(run(USE, **more)), "the reset begins when the card is asked for"
    job = f"import sys; sys.path.insert(0, {str(ROOT / 'trainer/src')!r}); "
    job += "from gaudi3_scale.hpu import device; card = device.resolve('hpu', 0, 1); card.random_state(); " + USE
    assert run(job, **more).stdout == "used\n"


@pytest.mark.parametrize("path", ["", "/nowhere/libtpc_kernels.so", "/usr"])
def test_operations_need_a_readable_kernel_path(
    path: str, node: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"GC_KERNEL_PATH": path, "GAUDI3_SIMULATOR_STRICTNESS": "operations-need-kernel-path=on"}
    done = run("import torch; print(torch.zeros(2).to('hpu').cpu()); torch.zeros(2).to('hpu') + 1", **more)
    assert done.stdout == "tensor([0., 0.])\n", "copies need no kernels"
    assert "RuntimeError: Graph compile failed. synStatus=26 [Generic failure]" in done.stderr
    assert run(USE, **{**more, "GC_KERNEL_PATH": sys.executable}).stdout == "used\n"
    monkeypatch.setenv("GAUDI3_SIMULATOR_ROOT", "")
    assert run(USE, **more).returncode == 1, "elsewhere the variable asks for it"
    monkeypatch.delenv("GC_KERNEL_PATH")
    del more["GC_KERNEL_PATH"]
    assert run(USE, **more).stdout == "used\n"
    monkeypatch.setenv("GAUDI3_SIMULATOR_ROOT", str(node))
    assert run(USE, **more).returncode == 1, "a node needs it"


def test_jobs_of_the_role_have_the_kernels_that_operations_need(
    node: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the vendor's packages bring, as the role reads it and as a unit then has it."""
    for folder in ("simulator/src", "collections"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    catalogue = pytest.importorskip("gaudi3_simulator.vendor.catalogue")
    job_unit = importlib.import_module("ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit")
    runtime = importlib.import_module("ansible_collections.gaudi3.scale.plugins.module_utils._jobs.runtime_environment")
    brought = {path: file for package in catalogue.packages("1.23.0-695") for path, file in package.files.items()}
    profiles = []
    for path, file in brought.items():
        if path.startswith("/etc/profile.d/"):
            profiles.append(node / Path(path).name)
            profiles[-1].write_bytes(file.data)
    found = runtime.read([str(path) for path in profiles])
    kernels = found["GC_KERNEL_PATH"]
    assert kernels in brought, f"no package brings {kernels}"
    (node / Path(kernels).name).touch()
    monkeypatch.delenv("GC_KERNEL_PATH")
    assert "Graph compile failed" in run(USE).stderr, "as a unit without the profile"
    assert run(USE, GC_KERNEL_PATH=str(node / Path(kernels).name)).stdout == "used\n"
    spec = job_unit.JobSpec(name="demo", config={}, nodes=("gaudi-1",), head_address="10.0.0.1")
    unit = job_unit.unit_text(spec, job_unit.NodeShare("/var/lib/gaudi3-scale/jobs/demo"))
    assert f"EnvironmentFile=-{runtime.PATH}" in unit.splitlines()
