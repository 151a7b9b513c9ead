"""A node's recipe caches: whole or absent after any kill, within their bytes, and never those of another key."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.recipe_cache import recipe_store as module
from gaudi3_scale.recipe_cache.archive import pack
from gaudi3_scale.recipe_cache.key import CacheKey, CacheRefusedError
from gaudi3_scale.recipe_cache.recipe_store import NodeCache, Store, entry_at

SIGNING = bytes(range(32))
FILES = {"a": b"1" * 3000, "b/c": b"2" * 10, "b/d": b""}


def key(shapes: str = "s") -> CacheKey:
    return CacheKey("1.24.1", "gaudi3", "bfloat16", "tp4", shapes)


def archive_of(tmp_path: Path, files: dict[str, bytes], of: CacheKey, name: str = "x.tar") -> Path:
    folder = tmp_path / f"source-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    pack(folder, of, tmp_path / name, SIGNING)
    return tmp_path / name


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return archive_of(tmp_path, FILES, key())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "root")


def held_by(entry: NodeCache) -> dict[str, bytes]:
    return {
        str(path.relative_to(entry.recipes)): path.read_bytes() for path in entry.recipes.rglob("*") if path.is_file()
    }


def test_an_archive_is_taken_once_and_what_the_bridge_adds_stays(store: Store, packed: Path) -> None:
    entry, changed = store.take(packed, SIGNING, {"release": "1.24.1"})
    assert changed and held_by(entry) == FILES
    assert entry.variable(512) == f"{store.root}/{key().name}/recipes,false,512"
    (entry.recipes / "added").write_bytes(b"by the bridge")
    again, changed = store.take(packed, SIGNING, {})
    assert not changed and again == entry and "added" in held_by(again)
    replaced, changed = store.take(packed, SIGNING, {}, replace=True)
    assert changed and held_by(replaced) == FILES
    assert [each.folder for each in store.entries()] == [entry.folder]


@pytest.mark.parametrize("field", ["release", "card", "dtype", "parallelism", "shapes"])
def test_a_wrong_key_is_refused_with_its_field_and_nothing_is_written(store: Store, packed: Path, field: str) -> None:
    with pytest.raises(CacheRefusedError, match=f"is for {field} "):
        store.take(packed, SIGNING, {field: "another"})
    assert store.entries() == [] and {path.name for path in store.root.iterdir()} == {".lock"}


def test_a_tampered_archive_leaves_nothing(store: Store, packed: Path) -> None:
    data = bytearray(packed.read_bytes())
    data[-3000] ^= 1
    packed.write_bytes(data)
    with pytest.raises(CacheRefusedError):
        store.take(packed, SIGNING, {})
    assert store.entries() == [] and {path.name for path in store.root.iterdir()} == {".lock"}


CALLS = ("write", "fsync", "open", "mkdir", "rename", "replace", "unlink", "rmdir")


def killed_after(calls: int, work: Callable[[], Any]) -> bool:
    """Do it in a process that ends without a word at its n-th call into the system; False if it came to its end."""
    child = os.fork()
    if child == 0:
        left = [calls]

        def counting(name: str) -> Callable[..., Any]:
            real = getattr(os, name)

            def call(*given: Any, **more: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return real(*given, **more)

            return call

        for name in CALLS:
            setattr(os, name, counting(name))
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), code
    return code == 9


def test_a_kill_at_any_call_leaves_a_whole_cache_or_none(store: Store, packed: Path, tmp_path: Path) -> None:
    newer = archive_of(tmp_path, {"new": b"3" * 100}, key(), "newer.tar")
    calls = 0
    states = set()
    while True:
        shutil.rmtree(store.root, ignore_errors=True)
        if calls % 2:  # there is an older one, which is replaced
            store.take(packed, SIGNING, {})
        killed = killed_after(calls // 2, lambda: store.take(newer, SIGNING, {}, replace=True))
        found = [held_by(entry) for entry in store.entries()]
        assert found in ([], [FILES], [{"new": b"3" * 100}]), found
        states.add(len(found) and len(found[0]))
        entry, _ = store.take(newer, SIGNING, {})
        assert held_by(entry) in (FILES, {"new": b"3" * 100})
        assert not [path for path in store.root.iterdir() if path.suffix in (".new", ".gone")]
        if not killed and calls % 2:
            break
        calls += 1
    assert calls > 30 and states == {0, 1, 3}


def test_a_kill_while_pruning_leaves_no_half_cache(store: Store, packed: Path) -> None:
    calls = 0
    while True:
        shutil.rmtree(store.root, ignore_errors=True)
        store.take(packed, SIGNING, {})
        killed = killed_after(calls, lambda: store.prune(0))
        assert [held_by(entry) for entry in store.entries()] in ([], [FILES])
        store.prune(10**9)
        assert not [path for path in store.root.iterdir() if path.suffix == ".gone"]
        if not killed:
            break
        calls += 1
    assert calls > 5 and store.entries() == []


def test_those_that_were_used_longest_ago_go_first(store: Store, tmp_path: Path) -> None:
    made = []
    for index, shapes in enumerate("abcd"):
        archive = archive_of(tmp_path, {"x": bytes(10_000)}, key(shapes))
        entry, _ = store.take(archive, SIGNING, {})
        os.utime(entry.folder / "used", (1000 + index, 1000 + index))
        made.append((entry, archive))
    store.take(archive_of(tmp_path, {"x": bytes(10_000)}, key("a")), SIGNING, {})  # used now
    with store.hold(made[1][0]):
        removed = store.prune(25_000)
        assert [entry.key.shapes for entry in removed] == ["c", "d"]
        assert store.prune(0, keep=made[0][0]) == []
    assert [entry.key.shapes for entry in store.prune(0, keep=made[0][0])] == ["b"]
    assert [entry.key.shapes for entry in store.entries()] == ["a"]


def test_a_cache_that_a_job_holds_is_not_replaced(store: Store, packed: Path) -> None:
    entry, _ = store.take(packed, SIGNING, {})
    with store.hold(entry), pytest.raises(TrainerError, match="is used by a job"):
        store.take(packed, SIGNING, {}, replace=True)
    assert store.take(packed, SIGNING, {}, replace=True)[1]


def test_an_empty_cache_of_a_key(store: Store) -> None:
    entry = store.make(key())
    assert held_by(entry) == {} and store.make(key()) == entry
    assert entry_at(entry.folder) == entry_at(entry.recipes) == entry
    assert entry_at(store.root) is None


def test_folders_that_are_no_caches_are_left_alone(store: Store, packed: Path) -> None:
    entry, _ = store.take(packed, SIGNING, {})
    other = store.root / "mine"
    other.mkdir()
    (other / "file").write_bytes(bytes(5000))
    shutil.copytree(entry.folder, store.root / "renamed")
    (store.root / "link").symlink_to(entry.folder)
    assert store.entries() == [entry]
    store.prune(0)
    assert {path.name for path in store.root.iterdir() if not path.name.startswith(".")} == {"mine", "renamed", "link"}


def test_what_stands_in_the_place_of_a_cache_is_said(store: Store, packed: Path) -> None:
    (store.root / key().name).mkdir(parents=True)
    with pytest.raises(CacheRefusedError, match="is no recipe cache: remove it"):
        store.take(packed, SIGNING, {})


def test_a_full_disk_is_found_before_it_is_filled(store: Store, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 2**20}))
    with pytest.raises(TrainerError, match="make room, or prune it"):
        store.take(packed, SIGNING, {})
    assert store.entries() == []


def test_roots_that_will_not_do(tmp_path: Path, packed: Path) -> None:
    with pytest.raises(ConfigError, match="has a comma"):
        Store(tmp_path / "a,b")
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainerError, match="cannot be used"):
        Store(tmp_path / "file").take(packed, SIGNING, {})


def test_the_key_is_beside_the_recipes(store: Store, packed: Path) -> None:
    entry, _ = store.take(packed, SIGNING, {})
    record = json.loads((entry.folder / "key.json").read_text())
    assert record["key"]["release"] == "1.24.1"
