"""What keeps a job from running on Kubernetes, each in a sentence: no model and no schema of its kinds sees these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from gaudi3_scale.config import Config
from gaudi3_scale.kubernetes.cluster import ClusterOptions, Volume
from gaudi3_scale.kubernetes.quantities import bytes_of

LAUNCHER = "the Kubernetes launcher"
RESERVED = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
"""How the nodes meet; Kubeflow Trainer's webhook refuses them in a TrainJob."""
OF_DEVICES = ("HABANA_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES", "HL_VISIBLE_DEVICES", "HLS_MODULE_ID")
"""Set by the driver or plugin that gives the cards; a container that has others gets other containers' cards."""
MEETING_PORT = 29500
TAKEN = ("/dev", "/proc", "/sys", "/etc/gaudi3")
WHOLE_SETS = (1, 8)
LAUNCHER_SECONDS = 5
"""Seconds of stop_timeout that the launcher keeps for itself, as under systemd."""
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"TOKEN|PASSW|SECRET|CREDENTIAL|(API|ACCESS|PRIVATE|AUTH)_?KEY", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]+@")


def problems(config: Config, options: ClusterOptions) -> Iterator[str]:
    """All of them; `config` is the job file as the pods read it."""
    yield from _name(options)
    yield from _devices(config, options)
    yield from _sizes(options)
    yield from _variables(options)
    yield from _volumes(options)
    yield from _files(config, options)
    yield from _network(config, options)
    yield from _leaving(config, options)
    yield from _open_secrets(config)


def longest_name(nodes: int) -> int:
    """Characters that a job's name may have: JobSet's webhook refuses names of pods, NAME-node-0-INDEX-XXXXX, above 63.

    >>> longest_name(10), longest_name(11)
    (48, 47)
    """
    return 63 - len("-node-0-") - len(str(nodes - 1)) - 6


def _name(options: ClusterOptions) -> Iterator[str]:
    if not _NAME.fullmatch(options.name):
        yield (
            f"name is {options.name!r}, but it has to be lower-case letters, digits and '-', with a letter first and a "
            "letter or digit at the end."
        )
    if len(options.name) > (most := longest_name(options.nodes)):
        yield (
            f"name has {len(options.name)} characters, and {most} are left of the 63 of a pod's name with "
            f"{options.nodes} nodes: shorten it."
        )


def _devices(config: Config, options: ClusterOptions) -> Iterator[str]:
    if config.device == "cuda":
        yield f"device is cuda, and {LAUNCHER} asks for Gaudi cards or for none: set device to hpu or cpu."
    if config.device == "hpu" and options.devices == "none":
        yield f"device is hpu, and devices is none, with which {LAUNCHER} asks for no cards: change one of them."
    if config.device not in ("auto", "hpu") or options.devices == "none":
        return
    if options.processes_per_node > 8:
        yield f"processes_per_node is {options.processes_per_node}, and a node has 8 cards: give 8, or device cpu."
    elif options.processes_per_node not in WHOLE_SETS and not options.allow_partial_nodes:
        yield (
            f"processes_per_node is {options.processes_per_node}, and neither Intel's DRA driver nor its plugin "
            "chooses cards of a node that the vendor supports together: give 8 or 1, or set allow_partial_nodes to "
            "try it."
        )


def _sizes(options: ClusterOptions) -> Iterator[str]:
    if bytes_of(options.shared_memory) >= bytes_of(options.memory):
        yield (
            f"shared_memory is {options.shared_memory}, which counts as memory, and memory is {options.memory}: give "
            "less of the one or more of the other."
        )


def _variables(options: ClusterOptions) -> Iterator[str]:
    for name in options.environment:
        if not _VARIABLE.fullmatch(name):
            yield f"environment has {name!r}, but a variable's name has letters, digits and '_', and no digit first."
        elif name in RESERVED:
            yield f"environment has {name}, which {LAUNCHER} sets: give nodes and processes_per_node."
        elif name in OF_DEVICES:
            yield f"environment has {name}, which what gives the pod its cards sets: take it out."
        elif name == "TORCH_ELASTIC_SHUTDOWN_TIMEOUT":
            yield f"environment has {name}, which follows from stop_timeout: set that."
        elif _SECRET.search(name):
            yield (
                f"environment has {name}, which looks like a secret, and all who read the manifests would see it: put "
                "it into a Secret, and name that in environment_secrets."
            )


def _volumes(options: ClusterOptions) -> Iterator[str]:
    for volume in options.volumes:
        if any(volume.path == folder or volume.path.startswith(f"{folder}/") for folder in TAKEN):
            yield f"volumes has {volume.path}, which pods have otherwise: choose another path."
        if options.nodes > 1 and volume.access in ("ReadWriteOnce", "ReadWriteOncePod"):
            yield (
                f"The volume at {volume.path} has the access {volume.access}, which is for one node, and the job has "
                f"{options.nodes}: give a claim with ReadWriteMany."
            )


def _files(config: Config, options: ClusterOptions) -> Iterator[str]:
    """Files and folders that the job names."""
    read = _read_by(config)
    if options.command:
        read["command"] = str(PurePosixPath(options.chdir or ".", options.command[0]))
    for key, path in read.items():
        if not path.startswith("/"):
            yield f"{key} is {path!r}, and {LAUNCHER} needs an absolute path, as the pods see it."
        elif _volume_of(path, options) is None and not any(_is_below(path, each) for each in options.image_folders):
            yield (
                f"{key} is {path}, and {LAUNCHER} finds it in none of the volumes ({_paths(options)}): add the volume "
                "that has it, or list its folder in image_folders if the image does."
            )
    data, target = config.data, config.checkpoint.target
    written = {
        "output_dir": str(config.output_dir),
        "data.directory": _path(data.directory),
        "checkpoint.target": None if target is None or target.startswith("s3://") else target,
        "interruption.file": _path(config.interruption.file),
    }
    for key, place in written.items():
        if place is not None:
            yield from _written(key, place, options)
    key_file = read.get("checkpoint.signing_key_file", "")
    volume = _volume_of(key_file, options)
    if volume is not None and volume.secret is not None and (options.run_as_user or options.fs_group):
        yield (
            f"checkpoint.signing_key_file is {key_file} in a Secret, which no other user than root can read without "
            "opening it to a group, and the trainer refuses such a key: put it on a claim with mode 0600."
        )


def _read_by(config: Config) -> dict[str, str]:
    """The files and folders that the job reads, by their keys; other values name shapes, data sets or nothing."""
    data, metrics = config.data, config.metrics
    found: dict[str, object] = {
        "model.name": config.model.name if "/" in config.model.name else None,
        "data.source": data.source,
        **{f"data.mixture.{number}.source": each.source for number, each in enumerate(data.mixture)},
        "data.tokenizer": data.tokenizer if data.tokenizer != "bytes" else None,
        "checkpoint.signing_key_file": config.checkpoint.signing_key_file,
        "metrics.certificate": metrics.certificate,
        "metrics.key": metrics.key,
        "metrics.client_authority": metrics.client_authority,
    }
    texts = {key: str(value) for key, value in found.items() if value}
    return {key: text for key, text in texts.items() if text != "stdlib" and not text.startswith("hf:")}


def _written(key: str, path: str, options: ClusterOptions) -> Iterator[str]:
    volume = _volume_of(path, options) if path.startswith("/") else None
    if volume is None or not volume.is_written:
        yield (
            f"{key} is {path}, and {LAUNCHER} needs it on a volume that outlives the pods and can be written "
            f"({_paths(options, written=True) or 'none is'}): change the path, or leave it out, or add the volume."
        )
    elif options.nodes > 1 and not volume.is_shared:
        yield (
            f"{key} is {path}, and the pods of {options.nodes} nodes do not share the volume at {volume.path}: give a "
            "claim with the access ReadWriteMany."
        )


def _network(config: Config, options: ClusterOptions) -> Iterator[str]:
    metrics, monitor = config.metrics, options.pod_monitor
    if options.host_network and options.network_policy:
        yield (
            "host_network is true, for which no NetworkPolicy holds: set network_policy to false, and let only the "
            "cluster's nodes reach its ports."
        )
    if (options.topology_required or options.topology_preferred) and options.queue is None:
        yield "topology_required and topology_preferred are for Kueue, and queue is not given: give it or leave them."
    if metrics.enabled and metrics.port == MEETING_PORT:
        yield f"metrics.port is {MEETING_PORT}, where the nodes of the job meet: choose another."
    if monitor is None:
        return
    if not metrics.enabled:
        yield "pod_monitor is given, and metrics.enabled is false: set it, or leave pod_monitor out."
    if metrics.port == 0:
        yield f"metrics.port is 0, any free one, and {LAUNCHER} names it in the PodMonitor: give a number, as 9410."
    if metrics.address.startswith("127.") or metrics.address in ("localhost", "::1"):
        yield (
            f"metrics.address is {metrics.address}, where nothing outside of the pod reaches it, and pod_monitor is "
            "given: leave the address out."
        )
    if bool(metrics.certificate) != (monitor.tls_config is not None):
        yield (
            "Metrics over TLS take metrics.certificate in the job file and pod_monitor.tls_config together: give both "
            "or none."
        )


def _leaving(config: Config, options: ClusterOptions) -> Iterator[str]:
    seconds = options.stop_timeout - LAUNCHER_SECONDS
    if config.interruption.grace > seconds:
        yield (
            f"interruption.grace is {config.interruption.grace:g} s, and stop_timeout leaves the processes "
            f"{seconds} s: raise stop_timeout, or leave grace out."
        )
    if config.cost.on_budget == "stop":
        yield (
            f"cost.on_budget is stop, which ends the job with exit code 75, and {LAUNCHER} has such a job start again "
            "and again: set it to alert."
        )


def _open_secrets(config: Config) -> Iterator[str]:
    for key, value in _texts(config.model_dump(mode="json"), ""):
        if _PASSWORD.search(value):
            yield (
                f"{key} has a password in its address, and all who read the ConfigMap would see it: put it into a "
                "variable, and its Secret into environment_secrets."
            )


def _texts(value: object, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _texts(each, f"{key}.{number}")
    elif isinstance(value, str):
        yield key, value


def _path(value: object) -> str | None:
    return None if value is None else str(value)


def _is_below(path: str, folder: str) -> bool:
    return ".." not in PurePosixPath(path).parts and (path == folder or path.startswith(f"{folder}/"))


def _volume_of(path: str, options: ClusterOptions) -> Volume | None:
    return next((volume for volume in options.volumes if _is_below(path, volume.path)), None)


def _paths(options: ClusterOptions, written: bool = False) -> str:
    return ", ".join(volume.path for volume in options.volumes if volume.is_written or not written)
