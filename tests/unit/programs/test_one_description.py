"""One description of a job, carried by each launcher: a field is found in what a launcher writes, or it is refused.

A refusal is a sentence that names the field and the launcher. The launchers are the systemd units of gaudi_train, the
manifests of `gaudi3-train kubernetes` and the batch script of `gaudi3-train slurm`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.config_file import config_text
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.job import KEYS
from gaudi3_scale.config import Config
from gaudi3_scale.config.section import Section
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.kubernetes.cluster import NOT_CARRIED, ClusterOptions
from gaudi3_scale.kubernetes.cluster_file import checked
from gaudi3_scale.kubernetes.kubernetes_job import make, uses_cards
from gaudi3_scale.kubernetes.manifests import manifests
from gaudi3_scale.slurm import slurm_options
from gaudi3_scale.slurm.script import END, batch_script
from gaudi3_scale.slurm.slurm_job import make as make_slurm

SLURM: dict[str, Any] = {
    "name": "demo",
    "nodes": 2,
    "processes_per_node": 8,
    "cpu": 64,
    "time": "24:00:00",
    "folder": "/srv",
}
CLUSTER: dict[str, Any] = {
    "name": "demo",
    "namespace": "training",
    "image": "registry.example/gaudi3-train:1",
    "nodes": 2,
    "processes_per_node": 8,
    "cpu": 64,
    "memory": "400Gi",
    "shared_memory": "64Gi",
    "huge_pages": "95000Mi",
    "volumes": [{"claim": "all", "access": "ReadWriteMany", "path": "/srv"}],
}
SPEC = JobSpec("demo", {}, ("gaudi-1", "gaudi-2"), "10.0.0.1", processes_per_node=8)
SHARE = NodeShare("/var/lib/gaudi3-scale/jobs/demo")
PATHS = {
    "output_dir", "model.name", "data.source", "data.tokenizer", "data.directory", "interruption.file",
    "checkpoint.target", "checkpoint.signing_key_file", "metrics.certificate", "metrics.key",
    "metrics.client_authority", "recipe_cache.directory", "recipe_cache.archive", "recipe_cache.signing_key_file",
}  # fmt: skip
#: What a field needs beside it, and values of fields that need a certain form.
BESIDE: dict[str, dict[str, Any]] = {
    "preference": {"data.content": "preference"},
    "ddp": {"train.strategy": "optimized_ddp"},
    **{f"train.{name}": {"train.strategy": "habana_fsdp"} for name in ("replicas", "reshard_after_forward")},
    "train.reduce_each_micro_batch": {"train.strategy": "habana_fsdp"},
    **{f"train.{name}": {"train.micro_batch_size": "auto"} for name in ("max_micro_batch_size", "target_utilization")},
    "train.global_batch_size": {"train.micro_batch_size": "auto"},
    "train.batch_scaling": {"train.micro_batch_size": "auto", "train.reference_batch_size": 8},
    "train.reference_batch_size": {"train.micro_batch_size": "auto", "train.batch_scaling": "linear"},
    "train.compile_backend": {"train.mode": "compile"},
    "interruption.file": {"interruption.sources": ["file"]},
    "interruption.sources": {"interruption.file": "/srv/leave"},
    "metrics.certificate": {"metrics.key": "/srv/key"},
    "metrics.key": {"metrics.certificate": "/srv/certificate"},
    "metrics.client_authority": {"metrics.certificate": "/srv/certificate", "metrics.key": "/srv/key"},
    "cost.node_price_per_hour": {"cost.price_source": "contract", "cost.price_date": "2026-11-01"},
    "cost.budget": {
        "cost.node_price_per_hour": 1.5,
        "cost.price_source": "contract",
        "cost.price_date": "2026-11-01",
    },
    "model.config": {"model.name": "llama-tiny"},
    "recipe_cache.archive": {"recipe_cache.directory": "/srv/graphs", "recipe_cache.signing_key_file": "/srv/key"},
    "memory.budget_gib": {"memory.activation_checkpointing": "budget"},
}
VALUES: dict[str, list[Any]] = {
    "data.mixture": [[{"source": "/srv/a", "weight": 1.0}]],
    "train.batch_warmup": [[{"from_tokens": 0, "samples_per_step": 8}]],
    "train.betas": [[0.8, 0.9]],
    "model.config": [{"vocab_size": 512}],
    "interruption.sources": [["signal", "file"]],
    "tracking.trackers": [["tensorboard"]],
    "monitoring.actions": [["checkpoint"]],
    "profile.activities": [["cpu"]],
    "ddp.balance": [[2, 1]],
    "cost.price_date": ["2026-11-01"],
    "cost.currency": ["EUR"],
    "checkpoint.endpoint_url": ["https://store.example"],
    "model.lora.targets": [["q_proj"]],
}


def leaves(section: type[Section] = Config, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key that holds a value, dotted."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from leaves(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, field


FIELDS = dict(leaves())


def candidates(key: str, field: FieldInfo) -> Iterator[Any]:
    """Values other than the default."""
    yield from VALUES.get(key, [])
    if key in PATHS:
        yield f"/srv/{PurePosixPath(key.replace('.', '-'))}"
    kinds = [field.annotation, *get_args(field.annotation)]
    for kind in kinds:
        if get_origin(kind) is Literal:
            yield from (value for value in get_args(kind) if value != field.default)
    if isinstance(field.default, bool):
        yield not field.default
    if int in kinds or float in kinds or isinstance(field.default, int | float):
        number = field.default if isinstance(field.default, int | float) else 1
        yield from (number + 1, number * 2 + 2, number / 2, 0.3, 3, 8, 64, 1000)
    if str in kinds:
        yield from ("other", "other-text")


def with_value(key: str, value: Any) -> dict[str, Any]:
    """A job file with this value, and what it needs beside it."""
    beside = next((BESIDE[each] for each in (key, key.partition(".")[0]) if each in BESIDE), {})
    found: dict[str, Any] = {}
    for dotted, each in {**beside, key: value}.items():
        *parents, last = dotted.split(".")
        place = found
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = each
    return found


def changed(key: str) -> tuple[dict[str, Any], Config]:
    """The first job file that takes another value for a key."""
    for value in candidates(key, FIELDS[key]):
        values = with_value(key, value)
        try:
            config = Config.model_validate(copy.deepcopy(values), context={"elsewhere": True})
        except (ValidationError, ConfigError):
            continue
        if at(config.model_dump(mode="json"), key) != at(Config().model_dump(mode="json"), key):
            return values, config
    raise AssertionError(f"{key}: no other value is known, add one to VALUES or BESIDE")


def at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def under_systemd(values: dict[str, Any]) -> Any:
    """What the units' job reads; ValueError for what is refused."""
    spec = replace(SPEC, config=values)
    spec.check()
    read = Config.model_validate(yaml.safe_load(config_text(spec, SHARE)), context={"elsewhere": True})
    return read.model_dump(mode="json")


def on_kubernetes(config: Config) -> Any:
    """What the pods' job reads; ConfigError for what is refused."""
    written = manifests(make(config, checked(CLUSTER, uses_cards(config))))
    text = next(each.document["data"]["job.yml"] for each in written if each.document["kind"] == "ConfigMap")
    return Config.model_validate(yaml.safe_load(text), context={"elsewhere": True}).model_dump(mode="json")


def under_slurm(config: Config) -> Any:
    """What the batch script's job reads; ConfigError for what is refused."""
    script = batch_script(make_slurm(config, slurm_options.FILE.checked(SLURM)))
    text = script.split(f"<<'{END}' || exit 1\n")[1].split(f"\n{END}\n")[0]
    return Config.model_validate(yaml.safe_load(text), context={"elsewhere": True}).model_dump(mode="json")


@pytest.mark.parametrize("key", FIELDS)
def test_every_field_of_the_job_file_is_carried_or_refused_by_name(key: str) -> None:
    values, config = changed(key)
    wanted = at(config.model_dump(mode="json"), key)
    try:
        assert at(under_systemd(values), key) == wanted
    except ValueError as refused:
        assert not isinstance(refused, ValidationError)
        assert key in str(refused) and "gaudi_train" in str(refused)
    for carry, launcher in ((on_kubernetes, "the Kubernetes launcher"), (under_slurm, "the Slurm launcher")):
        try:
            assert at(carry(config), key) == wanted
        except ConfigError as refused:
            assert key in str(refused) and launcher in str(refused)


def test_few_fields_are_refused_and_these_are_known() -> None:
    """A launcher that refuses everything would pass above."""
    refused: dict[str, set[str]] = {"systemd": set(), "kubernetes": set(), "slurm": set()}
    for key in FIELDS:
        values, config = changed(key)
        carriers: tuple[tuple[str, Callable[[Any], Any], Any], ...] = (
            ("systemd", under_systemd, values),
            ("kubernetes", on_kubernetes, config),
            ("slurm", under_slurm, config),
        )
        for launcher, carry, given in carriers:
            try:
                carry(given)
            except (ValueError, ConfigError):
                refused[launcher].add(key)
    assert refused == {
        "systemd": {"output_dir"},
        "kubernetes": {"cost.on_budget"},
        "slurm": {"cost.on_budget"},
    }


#: Another value of each field of a job, as gaudi_train takes it, with what it needs beside it.
OF_A_JOB: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "config": {"config": {"train": {"max_steps": 7}}},
    "nodes": {"nodes": ("gaudi-1", "gaudi-2", "gaudi-3")},
    "head_address": {"head_address": "10.0.0.2"},
    "rdzv_port": {"rdzv_port": 29401},
    "processes_per_node": {"processes_per_node": 1},
    "max_restarts": {"max_restarts": 5},
    "threads": {"threads": 3},
    "environment": {"environment": {"ANY": "1e3"}},
    "environment_files": {"environment_files": ("/etc/any.env",)},
    "user": {"user": "other"},
    "venv": {"venv": "/opt/other"},
    "stop_timeout": {"stop_timeout": 300},
    "trainer_version": {"trainer_version": "9.9"},
    "spares": {"spares": 1, "max_restarts": 1},
    "min_nodes": {"min_nodes": 1, "max_restarts": 1},
    "data_sets": {"data_sets": ("/srv/data/corpus",)},
    "command": {"command": ("/srv/train.py", "--epochs=2")},
    "chdir": {"chdir": "/srv", "command": ("/srv/train.py",)},
    "container": {
        "container": {"engine": "podman", "image": "registry.example/train:1", "folders": [], "cards": True},
        "user": "root",  # whom the unit asks the machine for
    },
}
#: What the field is before, where that is not its default.
BEFORE: dict[str, dict[str, Any]] = {"command": {"command": ("/srv/train.py",)}}


def before_and_after(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A job without and with another value of a field, which differ by that alone."""
    after = OF_A_JOB[name]
    return {**{each: value for each, value in after.items() if each != name}, **BEFORE.get(name, {})}, after


@pytest.mark.parametrize("name", [each.name for each in fields(JobSpec)])
def test_every_field_of_a_job_is_carried_or_refused_by_name(name: str) -> None:
    before, after = (replace(SPEC, **given) for given in before_and_after(name))
    after.check()
    texts = [re.sub(r"rdzv-id=\S+", "", unit_text(each, SHARE) + config_text(each, SHARE)) for each in (before, after)]
    # The version of an installed trainer is a part of what a job is called, and of nothing else.
    assert (texts[0] == texts[1]) is (name == "trainer_version") and before.sha256 != after.sha256
    if name == "config":
        return  # each of its fields is above
    on_pods(name)
    in_a_script(name)


def in_a_file(launcher: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The launcher's file with fields of a job."""
    found = {**launcher, **given, **({"nodes": len(given["nodes"])} if "nodes" in given else {})}
    return {
        name: list(value) if isinstance(value, tuple) and name != "volumes" else value for name, value in found.items()
    }


def on_pods(name: str) -> None:
    """The field in the manifests, or its refusal."""
    before, after = (in_a_file(CLUSTER, given) for given in before_and_after(name))
    if name in NOT_CARRIED:
        with pytest.raises(ConfigError) as refused:
            checked(after, True)
        assert f"{name} is set, and the Kubernetes launcher does not carry it" in str(refused.value)
    else:
        texts = [
            json.dumps([each.document for each in manifests(make(job_of(given), checked(given, True)))])
            for given in (before, after)
        ]
        assert texts[0] != texts[1]


def in_a_script(name: str) -> None:
    """The field in the batch script, or its refusal."""
    launcher = {**SLURM, "allow_partial_nodes": True}
    before, after = (in_a_file(launcher, given) for given in before_and_after(name))
    read = slurm_options.FILE.checked
    if name in slurm_options.NOT_CARRIED:
        with pytest.raises(ConfigError) as refused:
            read(after)
        assert f"{name} is set, and the Slurm launcher does not carry it" in str(refused.value)
    else:
        assert script_of(before) != script_of(after)


def job_of(given: dict[str, Any]) -> Config | None:
    """No job file beside a script of the user's own."""
    return None if given.get("command") else Config()


def script_of(given: dict[str, Any]) -> str:
    return batch_script(make_slurm(job_of(given), slurm_options.FILE.checked(given)))


#: Another value of each option that Slurm alone has.
OF_SLURM = {
    "cpu": 8, "time": "1:00:00", "folder": "/other", "gres": "gpu", "memory": "800G", "exclusive": True,
    "requeue": False, "interface": "eth1", "options": ["--mail-type=FAIL"], "setup": ["module load gaudi"],
    **{name: f"a-{name}" for name in ("partition", "account", "qos", "reservation", "constraint", "exclude")},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(slurm_options.SlurmOptions.model_fields) - set(OF_A_JOB)))
def test_every_option_of_slurm_is_in_the_script_or_lets_something_pass(name: str) -> None:
    if name == "allow_partial_nodes":
        partial = {**SLURM, "processes_per_node": 4}
        assert script_of({**partial, name: True})
        with pytest.raises(ConfigError, match="set allow_partial_nodes to try it"):
            script_of(partial)
    else:
        assert script_of(SLURM) != script_of({**SLURM, name: OF_SLURM[name]})


@pytest.mark.parametrize(
    ("options", "not_carried"),
    [(ClusterOptions, NOT_CARRIED), (slurm_options.SlurmOptions, slurm_options.NOT_CARRIED)],
    ids=["kubernetes", "slurm"],
)
def test_every_option_of_a_job_is_known_to_other_launchers(options: type[Section], not_carried: dict[str, str]) -> None:
    known = {each.name for each in fields(JobSpec)} | set(KEYS)
    assert known <= set(options.model_fields) | set(not_carried)
    assert set(not_carried) <= known, "an option that no launcher has"
    assert not set(not_carried) & set(options.model_fields)
    assert {each.name for each in fields(JobSpec)} == set(OF_A_JOB)
