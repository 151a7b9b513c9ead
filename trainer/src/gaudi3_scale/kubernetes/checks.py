"""What keeps a job from running on Kubernetes, each in a sentence: no model and no schema of its kinds sees these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from gaudi3_scale.config import Config
from gaudi3_scale.kubernetes.cluster import ClusterOptions, Volume
from gaudi3_scale.kubernetes.quantities import bytes_of
from gaudi3_scale.launcher_checks import leaving, open_secrets, read_by, variable, written_by

LAUNCHER = "the Kubernetes launcher"
RESERVED = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
"""How the nodes meet; Kubeflow Trainer's webhook refuses them in a TrainJob."""
MEETING_PORT = 29500
TAKEN = ("/dev", "/proc", "/sys", "/etc/gaudi3")
WHOLE_SETS = (1, 8)
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def problems(config: Config, options: ClusterOptions) -> Iterator[str]:
    """All of them; `config` is the job file as the pods read it."""
    yield from _name(options)
    yield from _devices(config, options)
    yield from _sizes(options)
    yield from _variables(options)
    yield from _volumes(options)
    yield from _files(config, options)
    yield from _network(config, options)
    yield from leaving(config, options.stop_timeout, LAUNCHER)
    yield from open_secrets(
        config,
        "all who read the ConfigMap would see it: put it into a variable, and its Secret into environment_secrets",
    )


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
    secret = "all who read the manifests would see it: put it into a Secret, and name that in environment_secrets"
    for name in options.environment:
        if name in RESERVED:
            yield f"environment has {name}, which {LAUNCHER} sets: give nodes and processes_per_node."
        else:
            yield from variable(name, "what gives the pod its cards", secret)


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
    read = read_by(config)
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
    for key, place in written_by(config).items():
        yield from _written(key, place, options)
    key_file = read.get("checkpoint.signing_key_file", "")
    volume = _volume_of(key_file, options)
    if volume is not None and volume.secret is not None and (options.run_as_user or options.fs_group):
        yield (
            f"checkpoint.signing_key_file is {key_file} in a Secret, which no other user than root can read without "
            "opening it to a group, and the trainer refuses such a key: put it on a claim with mode 0600."
        )


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


def _is_below(path: str, folder: str) -> bool:
    return ".." not in PurePosixPath(path).parts and (path == folder or path.startswith(f"{folder}/"))


def _volume_of(path: str, options: ClusterOptions) -> Volume | None:
    return next((volume for volume in options.volumes if _is_below(path, volume.path)), None)


def _paths(options: ClusterOptions, written: bool = False) -> str:
    return ", ".join(volume.path for volume in options.volumes if volume.is_written or not written)
