"""Registered models with a real MLflow server over SQLite: register, promote, fetch, train on, go back, refuse."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import ForkedJob
from test_tracking import need
from tracking_servers import ask, mlflow_server
from typer.testing import CliRunner
from zygote import Client

from gaudi3_scale.checkpoint.identity import key_of
from gaudi3_scale.cli import app
from gaudi3_scale.config import load
from gaudi3_scale.config.registered import Reference
from gaudi3_scale.data.tokenizer import load_tokenizer
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.job.registered import folder_of, with_folder
from gaudi3_scale.models.build import architecture
from gaudi3_scale.registry import model_manifest as manifest
from gaudi3_scale.registry.fetching import fetch
from gaudi3_scale.registry.model_manifest import FileEntry, ModelManifest, TamperedError, digest_of
from gaudi3_scale.registry.server import RegistryServer, without_credentials

SMALL = (
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "model.sequence_length=32",
    "train.micro_batch_size=2",
    "train.log_every=2",
)
SMALL += ("data.validation_samples=4", "train.evaluate_every=2", "train.learning_rate=1e-2", "train.warmup_steps=0")
OF_A_FOLDER = ("model.hidden_size=128", "model.intermediate_size=344", "model.layers=3")
"""Sizes count for the name llama alone; these are the defaults."""
PRICED = ("cost.node_price_per_hour=10.0", "cost.price_source=a test", "cost.price_date=2026-11-01")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="module")
def uri(home: Path) -> Iterator[str]:
    need("mlflow")
    with mlflow_server(home) as address:
        yield address


@pytest.fixture(scope="module")
def trained(uri: str, warm: Client, text: Path, home: Path) -> ForkedJob:
    """A job of four steps whose checkpoints of both steps stay."""
    job = ForkedJob(warm, home / "job", text)
    job.fit(*SMALL, *PRICED, "train.max_steps=4", "checkpoint.every=2", "checkpoint.keep=4")
    return job


def command(*arguments: str | Path, code: int = 0) -> str:
    """`gaudi3-train` in this process; what it prints."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if code:
        assert isinstance(done.exception, TrainerError), done.output
        assert done.exception.exit_code == code
        return str(done.exception)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def stored(home: Path, name: str) -> list[Path]:
    """The files of this name in the server's storage, the oldest first."""
    return sorted((home / "artifacts").rglob(name), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def versions(trained: ForkedJob, uri: str) -> list[str]:
    """Versions 1 and 2 of the model demo, of steps 2 and 4; what the commands said."""
    more = ("--name", "demo", "--uri", uri)
    return [
        command("register", trained.node(), *more, "--step", "2"),
        command("register", trained.node(), *more, "--commit", "c" * 40),
    ]


def test_a_registered_version_says_where_it_comes_from(
    versions: list[str], trained: ForkedJob, uri: str, home: Path
) -> None:
    assert versions[0].startswith("demo version 1 is step 2, manifest ")
    assert versions[1].startswith("demo version 2 is step 4, manifest ")
    (found,) = [
        each for each in json.loads(command("registry", "list", "--uri", uri, "--json")) if each["version"] == 2
    ]
    assert found["aliases"] == ["candidate"]
    lineage = found["lineage"]
    # The digest of the checkpoint, as anybody computes it from the manifest of the checkpoint.
    files = json.loads((trained.node() / "checkpoints/step-00000004/manifest.json").read_text())["files"]
    text = json.dumps({name: files[name]["sha256"] for name in sorted(files)})
    assert lineage["checkpoint_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    evaluated = [json.loads(line) for line in (trained.node() / "evaluation.jsonl").read_text().splitlines()]
    assert lineage["validation_loss"] == str(evaluated[-1]["validation_loss"])
    assert lineage["checkpoint_step"] == "4" and lineage["commit"] == "c" * 40 and lineage["cost"].endswith(" USD")
    assert lineage["job"] == json.loads((trained.node() / "job-id").read_text())["id"]

    written = json.loads(stored(home, manifest.FILE)[-1].read_text())["lineage"]
    assert written["configuration"]["train"]["max_steps"] == 4 and written["data"]["sha256"] == lineage["data_sha256"]
    assert written["software"]["torch"] and written["results"]["cost"]["spent"] > 0
    assert not list(trained.node().glob(".register-*"))

    again = command("register", trained.node(), "--name", "demo", "--uri", uri)
    assert again == "demo version 2 is this very model (step 4): nothing to do\n"


def test_a_version_is_promoted_and_the_champion_before_comes_back(versions: list[str], uri: str) -> None:
    at = ("--uri", uri)
    assert "no champion to go back from" in command("registry", "rollback", "demo", *at, code=2)
    assert command("registry", "promote", "demo@1", "canary", *at) == "demo version 1 is canary now\n"
    assert command("registry", "promote", "demo@canary", "champion", *at) == "demo version 1 is champion now\n"
    assert "first champion" in command("registry", "rollback", "demo", *at, code=2)
    said = command("registry", "promote", "demo@candidate", "champion", *at)
    assert said == "demo version 2 is champion now; before it was version 1\n"
    assert command("registry", "promote", "demo@2", "champion", *at) == "demo version 2 is champion already\n"
    said = command("registry", "rollback", "demo", *at)
    assert said == "demo version 1 is champion again, in the place of version 2\n"
    # Cut off between what is remembered and the alias: version 2 is remembered, and 1 is the champion still.
    command("registry", "promote", "demo@2", "champion", *at)
    ask(uri, "registered-models/alias", name="demo", alias="champion", version="1")
    assert "first champion" in command("registry", "rollback", "demo", *at, code=2)
    command("registry", "promote", "demo@2", "champion", *at)
    assert "version 1 is champion again" in command("registry", "rollback", "demo", *at)
    listed = command("registry", "list", "demo", *at).splitlines()
    assert "canary,champion" in listed[0] and "candidate" in listed[1] and "step 4" in listed[1]


def test_what_cannot_be_is_refused(versions: list[str], trained: ForkedJob, uri: str, tmp_path: Path) -> None:
    at = ("--uri", uri)
    assert "no model 'other'" in command("registry", "fetch", "other@champion", tmp_path / "a", *at, code=2)
    assert "no version 9" in command("registry", "fetch", "demo@9", tmp_path / "a", *at, code=2)
    for odd in ("demo", "../demo@1", "demo@latest", "demo@", "@1"):
        assert "names no registered model" in command("registry", "fetch", odd, tmp_path / "a", *at, code=2)
    assert "The alias is 'prod'" in command("registry", "promote", "demo@1", "prod", *at, code=2)
    assert "is no output_dir" in command("register", tmp_path, "--name", "demo", *at, code=2)
    assert "is none for a registered model" in command("register", trained.node(), "--name", "a/b", *at, code=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    assert "holds something else" in command("registry", "fetch", "demo@1", tmp_path / "mine", *at, code=2)
    assert "does not say of which checkpoint" in command(
        "register", trained.node(), "--name", "demo", "--export", tmp_path / "mine", *at, code=2
    )
    with pytest.raises(ConfigError, match=r"model\.name is 'registry:demo', which names no registered model"):
        load(None, ["model.name=registry:demo"])
    with pytest.raises(ConfigError, match="which only the model of that name brings"):
        load(None, ["data.tokenizer=registry:demo@1"])
    elsewhere = load(None, ["model.name=registry:demo@1", "data.tokenizer=registry:demo@1"])
    for refuse in (lambda: architecture(elsewhere.model), lambda: load_tokenizer(elsewhere.data)):
        with pytest.raises(ConfigError, match=r"which only `gaudi3-train fit` fetches: .*registry fetch demo@1 FOLDER"):
            refuse()


def test_a_registry_that_does_not_answer_is_one_sentence_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    need("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrainerError, match=r"^The registry at http://127\.0\.0\.1:9/ cannot list") as caught:
        RegistryServer("http://me:hidden@127.0.0.1:9/").names()
    assert "hidden" not in str(caught.value) and "\n" not in str(caught.value)
    assert without_credentials("sqlite:////a/b@c.db") == "sqlite:////a/b@c.db"
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ConfigError, match="Nothing says where the registry is"):
        RegistryServer()


def test_a_fetched_model_is_whole_or_not_there(versions: list[str], uri: str, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "model"
    look = ("--uri", uri, "--dry-run")
    seen = json.loads(command("registry", "fetch", "demo@candidate", folder, *look, "--json"))
    assert (seen["version"], seen["there"], folder.exists()) == (2, False, False)
    assert seen["lineage"]["checkpoint_step"] == "4" and len(seen["lineage"]["checkpoint_sha256"]) == 64
    said = json.loads(command("registry", "fetch", "demo@candidate", folder, "--uri", uri, "--json"))
    digest = digest_of((folder / manifest.FILE).read_bytes())
    assert said == {"name": "demo", "version": 2, "alias": "candidate", "digest": digest, "folder": str(folder)}
    assert {"config.json", "model.safetensors", "gaudi3_lineage.json"} < {path.name for path in folder.iterdir()}
    assert (folder / "model.safetensors").stat().st_mode & 0o044  # who serves it is another user
    assert command("registry", "fetch", "demo@2", folder, *look) == f"demo version 2: {folder} has it already\n"
    assert command("registry", "fetch", "demo@1", folder, *look) == f"demo version 1: {folder} does not have it\n"
    assert "no version 9" in command("registry", "fetch", "demo@9", folder, *look, code=2)
    assert json.loads(command("registry", "fetch", "demo@2", folder, "--uri", uri, "--json"))["alias"] is None
    assert "holds something else" in command("registry", "fetch", "demo@1", folder, "--uri", uri, code=2)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-1] + b"!")
    assert "model.safetensors has another SHA-256" in command(
        "registry", "fetch", "demo@2", folder, "--uri", uri, code=2
    )

    def refused(path: Path, content: bytes | None, reason: str) -> None:
        """What the server has instead, which must not come to the disk."""
        before = path.read_bytes()
        path.unlink() if content is None else path.write_bytes(content)
        try:
            message = command("registry", "fetch", "demo@2", tmp_path / "tampered", "--uri", uri, code=2)
            assert reason in message and path.name in message, message
        finally:
            path.write_bytes(before)
        assert [each.name for each in tmp_path.iterdir()] == ["deep"]

    there, about = (stored(home, name)[-1] for name in ("model.safetensors", manifest.FILE))
    refused(there, weights[:-1] + b"!", "has another SHA-256")
    refused(there, weights + b"!", "bytes instead of")
    refused(about, about.read_bytes().replace(b'"torch"', b'"Torch"'), "has another SHA-256 than the registry says")


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "a/../../evil", ".hidden", "a//b", "gaudi3_manifest.json", ""]
)
def test_names_in_a_manifest_are_data(name: str) -> None:
    entry = {"size": 1, "sha256": "0" * 64}
    text = json.dumps({"format": 1, "files": {"config.json": entry, name: entry}, "lineage": {}}).encode()
    with pytest.raises(TamperedError, match="no registration writes"):
        ModelManifest.load(text, "demo version 1")


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b'{"format": 1}', b'{"format": 1, "files": {"a": {}}}'])
def test_a_manifest_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(TamperedError, match="has a manifest that is none"):
        ModelManifest.load(text, "demo version 1")
    whole = ModelManifest({"a": FileEntry(1, "0" * 64)}, {"x": 1})
    assert ModelManifest.load(whole.dump().encode(), "") == whole


def test_a_job_trains_on_from_a_version_and_keeps_it(
    versions: list[str], trained: ForkedJob, warm: Client, text: Path, uri: str, tmp_path: Path
) -> None:
    command("registry", "promote", "demo@1", "champion", "--uri", uri)
    job = ForkedJob(warm, tmp_path / "next", text, processes=2)
    settings = (
        *OF_A_FOLDER,
        "model.name=registry:demo@champion",
        "model.sequence_length=32",
        "train.micro_batch_size=2",
    )
    settings += (
        f"tracking.mlflow_uri={uri}",
        "data.validation_samples=4",
    )
    settings += ("train.warmup_steps=0", "train.log_every=1", "checkpoint.every=2", "train.collective_timeout=60")
    # Killed before its first checkpoint, and the champion is another one since.
    (job.node()).mkdir(parents=True)
    job.fit(*settings, "train.max_steps=2")
    begun = json.loads((job.node() / "registered.json").read_text())
    shutil.rmtree(job.node() / "checkpoints")
    (job.node() / "status.json").unlink()
    command("registry", "promote", "demo@2", "champion", "--uri", uri)
    said = job.fit(*settings, "train.max_steps=2")
    assert "training on from demo version 1 of the registry, verified, in " in said
    evaluated = json.loads((trained.node() / "evaluation.jsonl").read_text().splitlines()[0])
    assert abs(job.losses()[0][1] - evaluated["validation_loss"]) < 0.7  # and not that of random weights, 5.5

    # Resumed without the server: the checkpoint names the version, and its files are here.
    offline = [each if "mlflow_uri" not in each else "tracking.mlflow_uri=http://127.0.0.1:9" for each in settings]
    said = job.fit(*offline, "train.max_steps=4")
    assert "resuming from step 2" in said and "from demo version 1" in said
    other = [each.replace("@champion", "@2") for each in settings]
    said = job.fit(*other, "train.max_steps=6", code=2)
    assert "this job began with demo version 1: give registry:demo@1" in said
    assert command("register", job.node(), "--name", "next", "--uri", uri).startswith("next version 1 is step 4")
    (found,) = json.loads(command("registry", "list", "next", "--uri", uri, "--json"))
    assert found["lineage"]["base"] == "demo@1" and begun["version"] == 1


def test_the_folder_takes_the_place_of_the_model_and_of_its_tokenizer() -> None:
    config = load(None, ["model.name=registry:demo@3", "data.tokenizer=registry:demo@3", "output_dir=/job"])
    chosen = {"name": "demo", "version": 3}
    local = with_folder(config, folder_of(config, chosen))
    assert local.model.name == local.data.tokenizer == "/job/registered/demo-3"
    assert key_of(config) != key_of(local)  # a job that lost its disks is found by the name that it was given


def test_a_version_of_somebody_else_is_not_fetched(uri: str, tmp_path: Path) -> None:
    """It has no digest that its files could be compared with."""
    made: dict[str, Any] = ask(uri, "runs/create", experiment_id="0")["run"]["info"]
    ask(uri, "registered-models/create", name="foreign")
    ask(uri, "model-versions/create", name="foreign", source=made["artifact_uri"], run_id=made["run_id"])
    with pytest.raises(ConfigError, match=r"foreign version 1 has no digest of a manifest"):
        fetch(RegistryServer(uri), Reference("foreign", "1"), tmp_path / "model")
    assert not list(tmp_path.iterdir())
