"""gaudi_dataset: copied once and whole, gone on with after a kill, refused in one sentence."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._data import copy, index, judge, uses
from ansible_collections.gaudi3.scale.plugins.module_utils._data.source import Folder
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import dataset
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_dataset

KEY = "755fdfaaf01f"
Made = Callable[..., Path]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make(folder: Path, shards: int = 2, size: int = 3000, seed: int = 7) -> Path:
    """A prepared set, as the trainer writes it."""
    folder.mkdir(parents=True)
    told = []
    for number in range(shards):
        tokens, starts = random.Random(seed + number).randbytes(size), bytes(16)
        (folder / f"shard-{number:05}.bin").write_bytes(tokens)
        (folder / f"shard-{number:05}.starts").write_bytes(starts)
        about = {"file": f"shard-{number:05}.bin", "tokens": size, "documents": 2, "learnt_sha256": ""}
        told.append({**about, "sha256": sha(tokens), "starts_sha256": sha(starts)})
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer/tokenizer.json").write_text("{}")
    (folder / "index.json").write_text(json.dumps({"format": 2, "dtype": "uint8", "shards": told}))
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Every file but the record of times."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if name != "checked.json"}


@pytest.fixture
def bring(run_module: Any, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(key: str = KEY, **options: Any) -> dict[str, Any]:
        given = {"source": str(tmp_path / "mnt" / key), "path": str(tmp_path / "local"), **options}
        result: dict[str, Any] = run_module(gaudi_dataset, **given)
        return result

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make(tmp_path / "mnt" / KEY)


def test_a_set_is_copied_whole_and_read_once(
    bring: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted = bring(check=True, diff=True)
    assert not (tmp_path / "local").exists()
    done = bring(diff=True)
    assert predicted == done
    assert (done["changed"], done["copied"], done["evicted"]) == (True, 2 * 3016 + 2, [])
    assert "copy shard-00000.bin (missing)\n" in done["diff"]["after"]
    local = tmp_path / "local" / KEY
    assert tree(local) == tree(source)
    name = "shard-00000.bin"
    record = json.loads((local / "checked.json").read_text())[name]
    assert record == [3000, (local / name).stat().st_mtime_ns, sha((local / name).read_bytes())]
    monkeypatch.setattr(judge, "digest", lambda path: pytest.fail(f"{path} was read"))
    again = bring(diff=True)
    assert (again["changed"], again["copied"], again["diff"]) == (False, 0, {"before": "", "after": ""})


def test_a_user_of_a_set_that_another_run_copied_meanwhile_is_told(
    bring: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = dataset._look

    def then_another_copies(*given: Any) -> Any:
        found = look(*given)
        monkeypatch.setattr(dataset, "_look", look)
        bring()
        return found

    monkeypatch.setattr(dataset, "_look", then_another_copies)
    done = bring(users=["mine"], diff=True)
    assert (done["changed"], done["copied"]) == (True, 0)
    assert done["diff"]["after"] == "used by mine\n"


def test_a_changed_byte_is_found_by_verify_and_mended(bring: Any, source: Path, tmp_path: Path) -> None:
    bring()
    broken = tmp_path / "local" / KEY / "shard-00001.bin"
    about = broken.stat()
    broken.write_bytes(b"\0" + broken.read_bytes()[1:])
    os.utime(broken, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert bring()["changed"] is False
    found = bring(verify=True)
    assert (found["copied_files"], found["copied"]) == ({"shard-00001.bin": "changed"}, 3000)
    assert tree(tmp_path / "local" / KEY) == tree(source)
    assert bring(verify=True)["changed"] is False


@pytest.mark.parametrize("seed", range(6))
def test_a_copy_killed_at_any_instant_goes_on(
    bring: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(copy, "BLOCK", 512)
    chance, local = random.Random(seed), tmp_path / "local" / KEY
    text = (source / "index.json").read_bytes()
    files = index.read(text, "index.json")
    for _attempt in range(3):
        local.parent.mkdir(exist_ok=True)
        if not (child := os.fork()):
            # A kill comes before one of the calls that change the disk or read the source.
            left = chance.randrange(1, 40)
            for module, name in ((os, "read"), (os, "rename"), (os, "replace"), (os, "fsync"), (os, "unlink")):
                _dies(module, name, left)
            copy.copy(
                Folder(str(source)), str(local.parent), KEY, text, files, copy.begun(str(local.parent), KEY, files)
            )
            os._exit(0)
        os.waitpid(child, 0)
        chance.random()
        if local.exists():
            assert tree(local) == tree(source)
            break
    bring()
    assert tree(local) == tree(source)
    assert not (tmp_path / f"local/.{KEY}.part").exists()


@pytest.mark.parametrize("left", range(1, 12))
def test_a_repair_that_is_killed_believes_no_changed_file(bring: Any, source: Path, tmp_path: Path, left: int) -> None:
    """The next run compares times alone, and those of the changed file are as they were."""
    bring()
    local = tmp_path / "local" / KEY
    about = (local / "shard-00001.bin").stat()
    (local / "shard-00001.bin").write_bytes(bytes(3000))
    os.utime(local / "shard-00001.bin", ns=(about.st_atime_ns, about.st_mtime_ns))
    text = (source / "index.json").read_bytes()
    files = index.read(text, "index.json")
    if not (child := os.fork()):
        found = judge.compare_files(str(local), files, verify=True)
        for name in ("rename", "replace", "fsync", "unlink"):
            _dies(os, name, left)
        copy.copy(Folder(str(source)), str(local.parent), KEY, text, files, found)
        os._exit(0)
    os.waitpid(child, 0)
    # Until the first change of the disk the set is as it was, and only reading it tells.
    bring(verify=local.exists())
    assert tree(local) == tree(source)


@pytest.mark.parametrize("name", ["rename", "unlink", "rmdir"])
@pytest.mark.parametrize("left", [1, 2, 3, 8, 9])
def test_a_removal_that_is_killed_is_ended_by_the_next_one(
    bring: Any, source: Path, tmp_path: Path, name: str, left: int
) -> None:
    """What was left of it would have a set that is prepared there later taken for one that was copied."""
    local = tmp_path / "local"
    bring(users=["mine"])
    bring(state="unused", users=["mine"])
    if not (child := os.fork()):
        _dies(os, name, left)
        bring(state="absent")
        os._exit(0)
    os.waitpid(child, 0)
    left_over = sorted(each.name for each in local.iterdir() if each.name != ".lock")
    assert bring(state="absent", check=True)["changed"] is bool(left_over)
    assert bring(state="absent")["changed"] is bool(left_over)
    assert sorted(each.name for each in local.iterdir()) == [".lock"]
    make(local / KEY)
    assert bring(state="absent")["msg"].startswith(f"{local}/{KEY} was not copied by this module")


def test_an_index_that_says_more_is_copied_alone(bring: Any, source: Path, tmp_path: Path) -> None:
    bring()
    (source / "index.json").write_text(json.dumps({**json.loads((source / "index.json").read_text()), "mask": 3}))
    done = bring()
    assert (done["copied_files"], done["copied"]) == ({"index.json": "changed"}, 0)
    assert tree(tmp_path / "local" / KEY) == tree(source)
    assert bring()["changed"] is False


def _dies(module: Any, name: str, calls: int) -> None:
    real, count = getattr(module, name), [calls]

    def call(*args: Any, **named: Any) -> Any:
        count[0] -= 1
        if not count[0]:
            os._exit(9)
        return real(*args, **named)

    setattr(module, name, call)


def test_a_half_file_is_gone_on_with_and_a_wrong_half_begun_again(source: Path, tmp_path: Path) -> None:
    whole = (source / "shard-00000.bin").read_bytes()
    file = index.File(3000, sha(whole))
    for begun, copied in ((whole[:1000], 2000), (b"\0" * 1000, 3000), (whole + b"x", 3000), (b"", 3000)):
        (tmp_path / "f.part").write_bytes(begun)
        assert copy.copy_file(Folder(str(source)), "shard-00000.bin", str(tmp_path / "f"), file) == copied
        assert (tmp_path / "f").read_bytes() == whole


def test_a_large_sparse_file_is_judged_by_its_record_alone(tmp_path: Path) -> None:
    (tmp_path / "big.bin").touch()
    os.truncate(tmp_path / "big.bin", 10 * 10**9)
    stamp = [10 * 10**9, (tmp_path / "big.bin").stat().st_mtime_ns, "0" * 64]
    (tmp_path / "checked.json").write_text(json.dumps({"big.bin": stamp}))
    assert judge.compare_files(str(tmp_path), {"big.bin": index.File(10 * 10**9, "0" * 64)}).bad == {}


def test_two_at_once_copy_once(source: Path, tmp_path: Path, bring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits for the lock; what it finds then is whole, and it copies nothing."""
    (tmp_path / "local").mkdir()
    handle = os.open(tmp_path / "local/.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    text = (source / "index.json").read_bytes()
    files = index.read(text, "index.json")
    real, waited = fcntl.flock, list[int]()
    monkeypatch.setattr(uses, "WAIT", 0)

    def first_ends(number: int, how: int) -> None:
        if not waited:
            waited.append(number)
            raise BlockingIOError
        if len(waited) == 1:
            waited.append(number)
            copy.copy(
                Folder(str(source)),
                str(tmp_path / "local"),
                KEY,
                text,
                files,
                judge.Judged({}, dict.fromkeys(files, "")),
            )
            real(handle, fcntl.LOCK_UN)
        real(number, how)

    monkeypatch.setattr(fcntl, "flock", first_ends)
    second = bring()
    assert (second["changed"], second["copied"]) == (False, 0)
    assert tree(tmp_path / "local" / KEY) == tree(source)


def test_a_full_disk_is_told_before_the_copy(
    bring: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=6000, f_frsize=1))
    refused = bring()
    assert refused["msg"] == (
        f"6034 bytes are to be copied to {tmp_path}/local, and its disk lacks 34 of them: free some, "
        "remove a set with state=absent, or give a path on another disk."
    )
    assert not (tmp_path / "local" / KEY).exists()


def test_the_budget_evicts_the_least_recent_and_none_in_use(bring: Any, source: Path, tmp_path: Path) -> None:
    local = tmp_path / "local"
    for age, key in ((30, "oldest"), (20, "middle"), (10, "latest")):
        make(tmp_path / "mnt" / key)
        bring(key)
        os.utime(local / f".{key}.lock", (1e9 - age, 1e9 - age))
    with (local / ".oldest.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        predicted = bring(budget_bytes=22000, check=True)
        assert (local / "middle").exists()
        assert predicted["evicted"] == bring(budget_bytes=22000)["evicted"] == ["middle"]
        assert sorted(each.name for each in local.iterdir() if not each.name.startswith(".")) == [
            KEY,
            "latest",
            "oldest",
        ]
        refused = bring("oldest", state="absent")["msg"]
    assert refused == f"{local}/oldest is in use: stop the job that reads it first."
    assert bring("oldest", state="absent")["changed"] is True
    assert bring("oldest", state="absent")["changed"] is False
    assert not (local / "oldest").exists() and (tmp_path / "mnt/oldest").exists()


@pytest.mark.parametrize("by", ["number", "path"])
def test_a_set_in_a_process_memory_is_in_use(bring: Any, source: Path, tmp_path: Path, by: str) -> None:
    bring()
    about = (tmp_path / "local" / KEY / "shard-00000.bin").stat()
    (tmp_path / "proc/77").mkdir(parents=True)
    device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
    known = {"number": f"{device} {about.st_ino}   /x/shard.bin", "path": f"00:99 1   {tmp_path}/local/{KEY}/a.bin"}
    (tmp_path / "proc/77/maps").write_text(f"7f00-7f01 rw-p 00000000 00:00 0\n7f00-7f01 r--s 00000000 {known[by]}\n")
    refused = bring(state="absent", proc_root=str(tmp_path / "proc"))
    assert refused["msg"] == f"{tmp_path}/local/{KEY} is in use: stop the job that reads it first."


def test_what_was_not_copied_here_is_not_removed(bring: Any, source: Path, tmp_path: Path) -> None:
    make(tmp_path / "local" / KEY)
    assert bring()["changed"] is False
    # As the page says to read a set; it makes the file of the lock.
    subprocess.run(["flock", "-s", str(tmp_path / "local" / f".{KEY}.lock"), "true"], check=True)
    assert bring()["changed"] is False
    make(tmp_path / "mnt/other")
    assert f"beside {KEY}, in use or not copied by this module" in bring("other", budget_bytes=7000)["msg"]
    said = f"{tmp_path}/local/{KEY} was not copied by this module"
    assert bring(state="absent")["msg"].startswith(said)
    (tmp_path / "local" / KEY / "shard-00000.bin").write_bytes(bytes(3000))
    assert bring()["msg"].startswith(said)
    assert (tmp_path / "local" / KEY / "shard-00000.bin").read_bytes() == bytes(3000)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("file", "../x.bin", "names the file '../x.bin', and NAME.bin without a folder is allowed."),
        ("file", "a\n.bin", "names the file 'a\\n.bin', and NAME.bin without a folder is allowed."),
        ("file", "index.json", "names the file 'index.json', and NAME.bin without a folder is allowed."),
        ("tokens", -1, "has tokens -1, and a whole number from 0 is allowed."),
        ("tokens", True, "has tokens True, and a whole number from 0 is allowed."),
        ("sha256", "0" * 63, "000..., and a SHA-256 of 64 hexadecimal digits is allowed."),
        ("file", "shard-00001.bin", "names shard-00001.bin twice: prepare the data again."),
    ],
)
def test_a_hostile_index_is_refused(
    bring: Any, source: Path, tmp_path: Path, field: str, value: object, said: str
) -> None:
    values = json.loads((source / "index.json").read_text())
    values["shards"][0][field] = value
    (source / "index.json").write_text(json.dumps(values))
    assert bring()["msg"].endswith(said[-60:])
    assert not (tmp_path / "local").exists()


def test_a_link_and_a_wrong_file_in_the_source_are_refused(bring: Any, source: Path, tmp_path: Path) -> None:
    shard = source / "shard-00000.bin"
    data = shard.read_bytes()
    shard.write_bytes(b"\0" + data[1:])
    assert bring()["msg"].startswith(f"{shard} is not as its index says: its SHA-256 differs")
    shard.unlink()
    shard.symlink_to("/etc/passwd")
    assert bring()["msg"].startswith(f"{shard} is a link or no file")
    assert not (tmp_path / "local" / KEY).exists()
    shard.unlink()
    shard.write_bytes(data)
    assert bring()["changed"] is True


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("name", [f".{KEY}.part", f".{KEY}.users", KEY])
def test_a_link_in_place_of_a_folder_of_the_set_is_refused(
    bring: Any, source: Path, tmp_path: Path, state: str, name: str
) -> None:
    if name != KEY:
        bring()
        (tmp_path / "local" / KEY / "shard-00000.bin").unlink()
    other, link = tmp_path / "other", tmp_path / "local" / name
    other.mkdir()
    (other / "mine").write_text("of somebody else")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(other)
    if name == KEY:
        uses.asked(str(tmp_path / "local"), KEY)
    assert bring(state=state)["msg"] == f"{link} is a link: give another path, or remove it."
    assert (other / "mine").read_text() == "of somebody else" and link.is_symlink()


def test_what_somebody_put_into_a_set_goes_with_its_repair(bring: Any, source: Path, tmp_path: Path) -> None:
    bring()
    local = tmp_path / "local" / KEY
    (local / "cache/deep").mkdir(parents=True)
    (local / "shard-00000.bin").unlink()
    assert bring()["copied_files"] == {"shard-00000.bin": "missing"}
    assert tree(local) == tree(source) and not (local / "cache").exists()


def test_a_source_that_is_not_mounted_is_refused(bring: Any, tmp_path: Path) -> None:
    said = f"{tmp_path}/mnt/{KEY}/index.json is not there: is {tmp_path}/mnt/{KEY} mounted, and has "
    assert bring()["msg"] == said + "gaudi3-train prepare ended there?"


def test_a_lock_that_stays_is_told_with_its_holder(bring: Any, source: Path, tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    # By a relative path, as a long command is cut in the message, and the test's folder may have any length.
    command = ["flock", "local/.lock", "sh", "-c", "echo held; exec sleep 600"]
    holder = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        refused = bring(lock_timeout=0)["msg"]
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
    assert refused == (
        f"{tmp_path}/local/.lock is held by process {holder.pid} (flock local/.lock sh -c echo held; exec sleep 600) "
        "for more than 0 seconds: wait for it to end, stop it, or raise lock_timeout."
    )
    assert not (tmp_path / "local" / KEY).exists()
    # What the holder had started had the lock too, and may end after it.
    assert bring(lock_timeout=60)["changed"] is True


def systemd(tmp_path: Path, says: str) -> dict[str, str]:
    """A systemctl that says the same of each unit, and writes down what it was asked."""
    place = tmp_path / "systemctl"
    place.write_text(f"#!/bin/sh\necho \"$*\" >> {tmp_path}/asked\nprintf '{says}'\n")
    place.chmod(0o755)
    return {"systemctl_executable": str(place)}


def test_a_set_that_a_job_waits_for_stays(bring: Any, source: Path, tmp_path: Path) -> None:
    job, local = "gaudi-train-demo.service", tmp_path / "local"
    asks = systemd(tmp_path, "ActiveState=inactive\\nUnitFileState=static\\n\\nActiveState=inactive\\n")
    refused = bring(state="used", users=[job], **asks)["msg"]
    assert refused == f"{local}/{KEY} is not there, or not whole: bring the set first, as the playbook data does."
    bring(**asks)
    predicted = bring(state="used", users=[job], check=True, diff=True, **asks)
    done = bring(state="used", users=[job], diff=True, **asks)
    assert predicted == done
    assert (done["changed"], done["diff"]) == (True, {"before": "", "after": f"used by {job}\n"})
    assert bring(state="used", users=[job], **asks)["changed"] is False
    assert bring(source=KEY, state="used", users=[job], **asks)["changed"] is False, "its name is enough"
    make(tmp_path / "mnt/other")
    refused = bring("other", budget_bytes=7000, **asks)["msg"]
    assert refused.startswith("The set has 6034 bytes, and the budget of 7000 bytes")
    assert f"beside {KEY}, in use or not copied by this module" in refused
    assert bring(state="absent", **asks)["msg"] == (
        f"{local}/{KEY} is in use by {job}: stop it, or say with state=unused that it needs the set no longer."
    )
    assert not (tmp_path / "asked").exists(), "within one boot the record alone counts"
    assert bring(state="unused", users=[job], **asks)["changed"] is True
    assert bring(state="unused", users=[job], **asks)["changed"] is False
    assert bring("other", budget_bytes=7000, **asks)["evicted"] == [KEY]
    assert sorted(each.name for each in local.iterdir()) == [".lock", ".other.lock", "other"]


def test_a_set_that_goes_while_a_job_asks_for_it_is_not_kept_for_the_job(
    bring: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring()
    look = dataset._look

    def evicted_after(*arguments: Any) -> Any:
        plan = look(*arguments)
        copy.remove(str(tmp_path / "local"), KEY)
        (tmp_path / f"local/.{KEY}.lock").unlink()
        return plan

    monkeypatch.setattr(dataset, "_look", evicted_after)
    refused = bring(users=["mine"])["msg"]
    said = f"{tmp_path}/local/{KEY} is not there, or not whole: bring the set first, as the playbook data does."
    assert refused == said
    assert not (tmp_path / f"local/.{KEY}.users").exists()


def test_what_the_unit_of_a_job_records_keeps_the_set(bring: Any, source: Path, tmp_path: Path) -> None:
    """The lines of the unit are run as they are; the trainer's systemd is not there to ask."""
    bring()
    spec = JobSpec(name="demo", config={}, nodes=("a",), head_address="a", data_sets=(str(tmp_path / "local" / KEY),))
    lines = [line.partition("=-+") for line in unit_text(spec, NodeShare("/jobs/demo")).splitlines() if KEY in line]
    commands = {kind: command.split() for kind, _mark, command in lines}
    asks = systemd(tmp_path, "ActiveState=active\\n")
    subprocess.run(commands["ExecStartPre"], check=True)
    assert "is in use by gaudi-train-demo.service: stop it" in bring(state="absent", **asks)["msg"]
    subprocess.run(commands["ExecStopPost"], check=True)
    assert bring(state="absent", **asks)["changed"] is True


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ("ActiveState=active\\nUnitFileState=static\\n\\nActiveState=inactive\\nUnitFileState=\\n", True),
        ("ActiveState=inactive\\nUnitFileState=static\\n\\nActiveState=inactive\\nUnitFileState=enabled\\n", True),
        ("ActiveState=failed\\nUnitFileState=static\\n\\nActiveState=inactive\\nUnitFileState=\\n", False),
    ],
)
def test_after_a_boot_a_job_counts_that_runs_or_will(
    bring: Any, source: Path, tmp_path: Path, says: str, kept: bool
) -> None:
    asks = systemd(tmp_path, says)
    bring(users=["gaudi-train-demo.service"], **asks)
    (record,) = (tmp_path / f"local/.{KEY}.users").iterdir()
    record.write_text('{"boot": "an earlier one"}')
    assert ("msg" in bring(state="absent", **asks)) is kept
    units = "gaudi-train-demo.service gaudi-boot-demo.service"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == f"show --property=ActiveState,UnitFileState -- {units}"


def test_sets_of_the_same_list_stay(bring: Any, source: Path, tmp_path: Path) -> None:
    make(tmp_path / "mnt/other")
    bring()
    assert bring("other", budget_bytes=7000, keep=[KEY])["msg"].startswith("The set has 6034 bytes")
    assert bring("other", budget_bytes=7000)["evicted"] == [KEY]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"users": ["../x"]}, "users has '../x', and letters, digits and _.@:- are allowed: "),
        (
            {"users": ["x" * 202]},
            "users has a name of 202 characters, and at most 201 are allowed: give a shorter one.",
        ),
        (
            {"source": f"/mnt/{'a' * 102}"},
            "The set's name has 102 characters, and at most 101 are allowed: give its folder a shorter name.",
        ),
        ({"state": "used"}, "state is used, and users is empty: name who uses the set."),
        ({"lock_timeout": -1}, "lock_timeout is -1, and seconds from 0 are allowed."),
        ({"remote": {"region": "x"}}, "remote has no type: give the kind of store, such as s3 "),
        ({"remote": {"type": "s3", "a b": 1}}, "remote has the option a b, and small letters, digits and _ are "),
        (
            {"remote": {"type": "s3", "secret_access_key": "hush"}},
            "remote has secret_access_key, which is a secret and ",
        ),
        (
            {"remote": {"type": "http", "url": "https://me:hush@x/"}},
            "remote has url, which is a secret and would stand ",
        ),
        ({"remote": {"type": "s3"}, "source": "a:b/key"}, "source is 'a:b/key', and BUCKET/FOLDER/NAME of the remote "),
        ({"remote": {"type": "s3"}, "rclone_executable": "/no"}, "/no is not installed here: install rclone, which "),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    bring: Any, source: Path, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    assert bring(**options)["msg"].startswith(said)
    assert not (tmp_path / "local").exists()


@pytest.mark.parametrize(
    ("inside", "path"),
    [
        ("path", "mnt/{key}"),
        ("path", "mnt/{key}/local"),
        ("path", "link/{key}/local"),
        ("source", "mnt"),
        ("source", ""),
    ],
)
def test_a_source_and_a_path_inside_each_other_are_refused(
    bring: Any, source: Path, tmp_path: Path, inside: str, path: str
) -> None:
    """A copy would write into its source, or take it away where the source lies in a set of the same name."""
    (tmp_path / "link").symlink_to("mnt")
    nested = source
    if inside == "source":
        nested = make(tmp_path / "mnt" / KEY / KEY)
    before = tree(tmp_path)
    given = tmp_path / path.format(key=KEY)
    inner, outer = (("path", given), ("source", nested)) if inside == "path" else (("source", nested), ("path", given))
    said = f"{inner[0]} is {inner[1]}, inside {outer[0]}, which is {outer[1]}: give a path apart from it."
    assert bring(source=str(nested), path=str(given))["msg"] == said
    assert tree(tmp_path) == before


def test_a_set_is_no_source_of_itself(bring: Any, source: Path, tmp_path: Path) -> None:
    assert bring(path=str(tmp_path / "mnt"))["msg"] == f"{source} is the source itself: give another path."
    assert not (tmp_path / "mnt/.lock").exists()


def test_a_secret_in_the_wrong_option_is_in_no_log(bring: Any, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(AnsibleModule, "log", lambda _self, message, **_more: logged.append(str(message)))
    found = bring(remote={"type": "s3", "secret_access_key": "hush"})
    assert "hush" not in str(logged) + str(found)
