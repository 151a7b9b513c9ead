"""The recipe cache of a job and on the command line."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gaudi3_scale import cli
from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu import pci
from gaudi3_scale.recipe_cache import recipes_of_job
from gaudi3_scale.recipe_cache.archive import pack, verify
from gaudi3_scale.recipe_cache.key import CacheRefusedError
from gaudi3_scale.recipe_cache.recipe_store import Store
from gaudi3_scale.recipe_cache.recipes_of_job import VARIABLE, key_of_job, prepare

SIGNING = bytes(range(32))


@pytest.fixture
def signing(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(SIGNING)
    path.chmod(0o600)
    return path


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "one").write_bytes(b"opaque")
    return folder


def config(tmp_path: Path, **cache: Any) -> Config:
    return Config.model_validate({"recipe_cache": {"directory": str(tmp_path / "caches"), **cache}})


def prepared(settings: Config, **environment: str) -> tuple[dict[str, str], list[str]]:
    said: list[str] = []
    prepare(settings, environment, said.append)
    return environment, said


def test_nothing_happens_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert prepared(Config()) == ({}, [])
    environment, said = prepared(config(tmp_path), **{VARIABLE: "/own,false,10"})
    assert environment == {VARIABLE: "/own,false,10"} and "recipe_cache.directory is not used" in said[0]
    assert not (tmp_path / "caches").exists()


def test_a_job_finds_its_own_cache_at_each_start_and_holds_it(tmp_path: Path) -> None:
    settings = config(tmp_path, size_mb=77)
    first, said = prepared(settings, WORLD_SIZE="8")
    second, _ = prepared(settings, WORLD_SIZE="8")
    other, _ = prepared(settings, WORLD_SIZE="4")
    assert said == [] and first[VARIABLE] == second[VARIABLE] != other[VARIABLE]
    folder, delete, size = first[VARIABLE].split(",")
    assert (delete, size) == ("false", "77") and Path(folder).is_dir()
    store = Store(tmp_path / "caches")
    assert len(store.entries()) == 2 and store.prune(0) == []
    for lock in recipes_of_job._held:
        fcntl.flock(lock, fcntl.LOCK_UN)
    assert len(store.prune(0)) == 2


def test_what_changes_the_graphs_changes_the_key() -> None:
    def key(**train: Any) -> Any:
        return key_of_job(Config.model_validate({"train": train}), 8)

    base = key()
    assert key(precision="bf16-mixed") == base
    assert key(learning_rate=0.1) == base
    assert key(precision="32-true").dtype != base.dtype
    assert key(micro_batch_size=4).shapes != base.shapes
    assert key(mode="lazy").shapes != base.shapes
    assert key_of_job(Config(), 16).parallelism != base.parallelism
    long = Config.model_validate({"model": {"sequence_length": 256}})
    assert key_of_job(long, 8).shapes != base.shapes


def test_the_archive_is_taken_where_this_node_has_none(tmp_path: Path, signing: Path, recipes: Path) -> None:
    archive = tmp_path / "cache.tar"
    settings = config(tmp_path, archive=str(archive), signing_key_file=str(signing))
    pack(recipes, key_of_job(settings, 1), archive, SIGNING)
    environment, said = prepared(settings)
    assert said == []
    assert (Path(environment[VARIABLE].split(",")[0]) / "one").read_bytes() == b"opaque"


def test_a_refused_archive_costs_the_compiling_and_not_the_training(
    tmp_path: Path, signing: Path, recipes: Path
) -> None:
    archive = tmp_path / "cache.tar"
    settings = config(tmp_path, archive=str(archive), signing_key_file=str(signing))
    pack(recipes, key_of_job(settings, 8), archive, SIGNING)
    environment, said = prepared(settings)
    (sentence,) = said
    assert "is for parallelism 'auto 8' and 'auto 1' is wanted" in sentence and "its graphs are compiled" in sentence
    assert list(Path(environment[VARIABLE].split(",")[0]).iterdir()) == []
    archive.write_bytes(b"rubbish")
    assert "does not begin with the manifest" in prepared(settings)[1][0]


def test_settings_that_will_not_do(tmp_path: Path, signing: Path) -> None:
    with pytest.raises(ValueError, match="keep_gb"):
        config(tmp_path, keep_gb=float("inf"))
    with pytest.raises(ConfigError, match=r"only with recipe_cache\.signing_key_file"):
        prepared(config(tmp_path, archive="x.tar"))
    signing.chmod(0o644)
    with pytest.raises(ConfigError, match="has the mode 0644"):
        prepared(config(tmp_path, archive="x.tar", signing_key_file=str(signing)))


def test_a_folder_that_cannot_be_used_does_not_end_the_training(tmp_path: Path) -> None:
    (tmp_path / "caches").write_text("in the way")
    environment, said = prepared(config(tmp_path))
    assert environment == {} and "goes on without a recipe cache" in said[0]


def test_fit_sets_the_variable_before_torch_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(
        "gaudi3_scale.hpu.torch_import.import_torch_for", lambda settings: found.append(os.environ[VARIABLE])
    )
    monkeypatch.setattr("gaudi3_scale.job.fit.fit", lambda settings, notices: None)
    words = [f"recipe_cache.directory={tmp_path / 'caches'}", f"output_dir={tmp_path / 'out'}"]
    result = CliRunner().invoke(cli.app, ["fit", *words])
    assert result.exit_code == 0, result.output
    assert found[0].startswith(f"{tmp_path}/caches/")


def test_a_card_is_known_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pci, "SYSFS", tmp_path)
    assert pci.generation() == ""
    for name, device, wanted in (("0000:b3:00.0", "0x1060", "gaudi3"), ("0000:19:00.0", "0x1020", "gaudi2")):
        card = tmp_path / "bus/pci/devices" / name
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x1da3\n")
        (card / "device").write_text(f"{device}\n")
        assert pci.generation() == wanted
    (card / "device").write_text("0x1061\n")
    assert pci.generation() == ""


def run(*words: str | Path, error: type[TrainerError] | None = None) -> str:
    """What a command prints, or the sentence with which it ends."""
    result = CliRunner().invoke(cli.app, ["recipe-cache", *map(str, words)])
    if error is None:
        assert result.exit_code == 0, (result.output, result.exception)
        return result.output
    assert isinstance(result.exception, error), result.output
    return str(result.exception)


FIELDS = ("release=1.24.1", "card=gaudi3", "dtype=bfloat16", "parallelism=tp4", "shapes=lin 4096")
KEY = [word for field in FIELDS for word in ("--key", field)]


def test_pack_verify_use_prune(tmp_path: Path, signing: Path, recipes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, root, key = tmp_path / "x.tar", tmp_path / "root", ("--signing-key", signing)
    said = run("pack", recipes, "--to", archive, *key, *KEY)
    assert said == f"{archive}: 1 file(s), 6 bytes, signed\n"
    assert "parallelism  tp4" in run("verify", archive, *key, "--key", "card=gaudi3")
    said = run("verify", archive, *key, "--key", "card=gaudi2", error=CacheRefusedError)
    assert said == ("The recipe cache is for card 'gaudi3' and 'gaudi2' is wanted: pack one that was made there.")
    answer = json.loads(run("use", archive, "--into", root, *key, "--size-mb", "512", "--json"))
    assert answer["changed"] and answer[VARIABLE] == f"{answer['folder']},false,512"
    assert run("use", archive, "--into", root, *key) == f"{VARIABLE}={answer['folder']},false,8192\n"
    again = tmp_path / "again.tar"
    run("pack", answer["folder"], "--to", again, *key)
    assert verify(again, SIGNING) == verify(archive, SIGNING)
    assert "have a key" not in run("pack", recipes, "--to", again, *key, error=ConfigError)
    monkeypatch.setattr("gaudi3_scale.recipe_cache.recipe_command.release", lambda: "1.23.0")
    assert "is for release '1.24.1'" in run("use", archive, "--into", root, *key, error=CacheRefusedError)
    assert run("prune", root, "--keep-gb", "1").startswith("1 cache(s), ")
    said = run("prune", root, "--keep-gb", "0")
    assert said.startswith("removed 1.24.1_gaudi3_bfloat16_") and said.endswith("0 cache(s), 0 bytes\n")


def test_use_keeps_within_its_bytes(tmp_path: Path, signing: Path, recipes: Path) -> None:
    root = tmp_path / "root"
    for shapes in ("a", "b"):
        archive = tmp_path / f"{shapes}.tar"
        words = [word if word != "shapes=lin 4096" else f"shapes={shapes}" for word in KEY]
        run("pack", recipes, "--to", archive, "--signing-key", signing, *words)
        run("use", archive, "--into", root, "--signing-key", signing, "--keep-gb", "0")
    assert [entry.key.shapes for entry in Store(root).entries()] == ["b"]


@pytest.mark.parametrize(
    "words, said",
    [
        (("pack", "recipes", "--to", "x"), "--key release=... is needed"),
        (("pack", "none", "--to", "x", *KEY), "is no folder"),
        (("pack", "recipes", "--to", "none/x", *KEY), "--to is none/x, whose folder does not exist"),
        (("pack", "recipes", "--to", ".", *KEY), "--to is ., which is a folder"),
        (("use", "x", "--into", "root", "--keep-gb", "nan"), "--keep-gb is nan: give 0 or more."),
        (("use", "x", "--into", "root", "--keep-gb", "-1"), "--keep-gb is -1: give 0 or more."),
        (("verify", "x", "--key", "colour=red"), "--key is 'colour=red'"),
        (("verify", "x", "--key", "card=a", "--key", "card=b"), "--key is 'card=b'"),
        (("verify", "x", "--key", "card"), "--key is 'card'"),
    ],
)
def test_wrong_options(
    tmp_path: Path, signing: Path, recipes: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in run(*words, "--signing-key", signing, error=ConfigError)
