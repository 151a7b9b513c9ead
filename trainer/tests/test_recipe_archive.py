"""A recipe cache as an archive: the same bytes again, or a refusal that says why."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.recipe_cache import archive
from gaudi3_scale.recipe_cache.archive import MANIFEST, opened, pack, read_key, verify
from gaudi3_scale.recipe_cache.key import CacheKey, CacheRefusedError

KEY = CacheKey("1.24.1", "gaudi3", "bfloat16", "tp4", "llama 4096 lin")
SIGNING = bytes(range(32))
FILES = {"one.recipe": b"a" * 700, "deep/er/two": b"", "deep/three": bytes(range(256)) * 5000, "naïve name": b"x"}


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    folder = tmp_path / "recipes"
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture
def packed(recipes: Path, tmp_path: Path) -> Path:
    pack(recipes, KEY, tmp_path / "cache.tar", SIGNING)
    return tmp_path / "cache.tar"


def read(path: Path, key: bytes = SIGNING) -> dict[str, bytes]:
    """All files of an archive, each to its end."""
    found = {}
    with opened(path, key) as (_, contents):
        for file, reader in contents:
            data = b""
            while piece := reader.read(1000):
                data += piece
            found[file.path] = data
    return found


def test_the_same_files_come_out_and_the_same_archive_goes_in(recipes: Path, packed: Path, tmp_path: Path) -> None:
    assert read(packed) == FILES
    manifest = verify(packed, SIGNING)
    assert manifest.key == KEY and manifest.size == sum(map(len, FILES.values()))
    pack(recipes, KEY, tmp_path / "again.tar", SIGNING)
    assert (tmp_path / "again.tar").read_bytes() == packed.read_bytes()


def test_it_is_a_tar(packed: Path) -> None:
    said = subprocess.run(["tar", "-tf", packed], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [MANIFEST, *(f"{index:06d}" for index in range(len(FILES)))] and not said.stderr


def test_any_changed_byte_is_found(packed: Path) -> None:
    data = packed.read_bytes()
    made = random.Random(1)
    places = {0, 100, 125, 156, 512, 700, len(data) - 1, *(made.randrange(len(data)) for _ in range(60))}
    for place in places:
        packed.write_bytes(data[:place] + bytes([data[place] ^ 0x11]) + data[place + 1 :])
        with pytest.raises(CacheRefusedError):
            read(packed)


def test_any_cut_or_longer_archive_is_found(packed: Path) -> None:
    data = packed.read_bytes()
    for size in (0, 1, 511, 512, 600, 3000, len(data) // 2, len(data) - 512, len(data) - 1):
        packed.write_bytes(data[:size])
        with pytest.raises(CacheRefusedError):
            read(packed)
    packed.write_bytes(data + b"\0")
    with pytest.raises(CacheRefusedError, match="does not end after the files"):
        read(packed)


def test_another_key_is_refused_before_anything_is_given_out(packed: Path) -> None:
    with pytest.raises(CacheRefusedError, match="not signed with this key"), opened(packed, b"k" * 32):
        raise AssertionError("it was opened")


def signed(record: dict[str, object], members: bytes = b"") -> bytes:
    """An archive with any manifest and a good signature, as one who has the key could make."""
    unsigned = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    record = {**record, "signature": hmac.new(SIGNING, unsigned, hashlib.sha256).hexdigest()}
    text = json.dumps(record).encode()
    return archive._header(MANIFEST, len(text)) + text + archive._padding(len(text)) + members + archive._END


@pytest.mark.parametrize(
    "path",
    ["../out", "/etc/x", "a/../../b", "./a", "a//b", "a/", "", ".", "a\\b", "a\nb", "a/" * 30 + "b", "x" * 1001, 7],
)
def test_paths_that_lead_elsewhere_are_refused_even_if_signed(tmp_path: Path, path: object) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    key = {"release": "1", "card": "c", "dtype": "d", "parallelism": "p", "shapes": "s"}
    record = {"version": 1, "key": key, "files": [{"path": path, "size": 0, "sha256": empty}]}
    target = tmp_path / "x.tar"
    target.write_bytes(signed(record, archive._header("000000", 0)))
    with pytest.raises(CacheRefusedError, match="names a file that it must not"):
        read(target)
    record["files"] = [{"path": "good", "size": 0, "sha256": empty}]
    target.write_bytes(signed(record, archive._header("000000", 0)))
    assert read(target) == {"good": b""}


@pytest.mark.parametrize(
    "change",
    [
        {"files": [{"path": "a", "size": -1, "sha256": "0" * 64}]},
        {"files": [{"path": "a", "size": 0, "sha256": "zz"}]},
        {"files": [{"path": "a", "size": 0, "sha256": "0" * 64}] * 2},
        {"files": {}},
        {"key": {"release": "1"}},
        {"key": {"release": 1, "card": "c", "dtype": "d", "parallelism": "p", "shapes": "s"}},
        {"version": 2},
        {"more": 1},
    ],
)
def test_manifests_of_another_form_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    key = {"release": "1", "card": "c", "dtype": "d", "parallelism": "p", "shapes": "s"}
    (tmp_path / "x.tar").write_bytes(signed({"version": 1, "key": key, "files": [], **change}))
    with pytest.raises(CacheRefusedError):
        read(tmp_path / "x.tar")


def test_links_pipes_and_empty_folders_are_not_packed(recipes: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.tar"
    for make in (
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.symlink_to(recipes / "deep"),
        os.mkfifo,
    ):
        odd = recipes / "odd"
        make(odd)
        with pytest.raises(TrainerError, match="odd is no regular file"):
            pack(recipes, KEY, target, SIGNING)
        odd.unlink()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TrainerError, match="has no files"):
        pack(empty, KEY, target, SIGNING)
    assert [path.name for path in tmp_path.iterdir() if "tar" in path.name] == []


@pytest.mark.parametrize("change", [b"b" * 700, b"a" * 699, b"a" * 701])
def test_a_folder_that_changes_meanwhile_is_not_packed(
    recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: bytes
) -> None:
    measured = archive._measured

    def measure(folder: Path, path: str) -> tuple[int, str]:
        found = measured(folder, path)
        if path == "one.recipe":
            (folder / path).write_bytes(change)
        return found

    monkeypatch.setattr(archive, "_measured", measure)
    with pytest.raises(TrainerError, match="changes while it is packed"):
        pack(recipes, KEY, tmp_path / "x.tar", SIGNING)
    assert not list(tmp_path.glob("*.tar*"))


def test_an_archive_that_is_a_link_or_missing(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "link.tar").symlink_to(packed)
    for name in ("link.tar", "none.tar"):
        with pytest.raises(TrainerError, match="cannot be read"):
            verify(tmp_path / name, SIGNING)


def test_the_signing_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_key(path)
    path.write_bytes(SIGNING)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="has the mode 0640"):
        read_key(path)
    path.chmod(0o600)
    assert read_key(path) == SIGNING
    path.write_bytes(b"short")
    with pytest.raises(ConfigError, match="has 5 bytes, fewer than 32"):
        read_key(path)
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(ConfigError, match="no regular file"):
        read_key(path)


def test_fields_of_a_key() -> None:
    with pytest.raises(CacheRefusedError, match=r"is for release '1\.24\.1' and '1\.23\.0' is wanted"):
        KEY.refuse_unless({"release": "1.23.0", "card": "gaudi2"})
    KEY.refuse_unless({"card": "gaudi3"})
    for wrong in ("", "a\nb", "ü", "x" * 201):
        with pytest.raises(ConfigError, match="plain characters"):
            CacheKey(wrong, "gaudi3", "bfloat16", "tp4", "s")
    names = {CacheKey("1/../2", "gaudi3", "b", "p", shapes).name for shapes in ("a", "b")}
    assert len(names) == 2 and all("/" not in name and not name.startswith(".") for name in names)
