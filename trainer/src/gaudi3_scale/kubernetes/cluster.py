"""What the cluster is and how the job runs there: the file of `--cluster`.

What role trainer knows too has the same name here. There is a default where a source has one; the rest is asked for.
"""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from gaudi3_scale.config.section import Section
from gaudi3_scale.kubernetes.quantities import (
    Cpu,
    Folder,
    HugePages,
    Label,
    LabelName,
    LabelValue,
    Memory,
    Subdomain,
    Text,
)
from gaudi3_scale.launcher_checks import MOST_NODES

SOURCES = ("claim", "secret", "config_map", "host_path")
READ_WRITE_MANY = "ReadWriteMany"
_LAST_ID = 2**31 - 1
"""Of a user or group, to Kubernetes."""
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    r"(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:)|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?/)?"
    rf"{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{{32,}})?"
)
"""As container engines read it: what stands before the first / is a registry where it has a dot or a port."""


class Volume(Section):
    """A folder of the pods; give one of claim, secret, config_map and host_path."""

    path: Folder = Field(description="where the pods see it")
    claim: Subdomain | None = Field(None, description="a PersistentVolumeClaim of the namespace")
    access: Literal["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod"] | None = Field(
        None, description="access mode of the claim, as `kubectl get pvc` shows it; needed with claim"
    )
    secret: Subdomain | None = Field(None, description="a Secret of the namespace, as files of mode 0400")
    config_map: Subdomain | None = Field(None, description="a ConfigMap of the namespace, as files")
    host_path: Folder | None = Field(None, description="a folder of the node, which has to be there on each")
    read_only: bool = Field(False, description="pods only read it")

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"the volume at {self.path} has {' and '.join(given) or 'nothing'}: give one of claim, "
                             "secret, config_map and host_path")  # fmt: skip
        if (self.claim is None) != (self.access is None):
            raise ValueError(f"the volume at {self.path} needs claim and access together")
        if self.access == "ReadOnlyMany" and not self.read_only:
            raise ValueError(f"the volume at {self.path} has the access ReadOnlyMany, and read_only is false")
        return self

    @property
    def is_written(self) -> bool:
        """Can the pods write into it, so that it is still there after they are gone?"""
        return not self.read_only and (self.claim is not None or self.host_path is not None)

    @property
    def is_shared(self) -> bool:
        """Can the pods of several nodes write into it?"""
        return self.claim is not None and self.access == READ_WRITE_MANY and not self.read_only


class Toleration(Section):
    """A taint of nodes on which the pods run anyway."""

    key: LabelName | None = Field(None, description="of the taint; null = of any")
    operator: Literal["Exists", "Equal"] = Field("Equal", description="Equal compares the value too")
    value: LabelValue | None = Field(None, description="of the taint")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(None, description="null = any")
    tolerationSeconds: int | None = Field(None, ge=0, description="with NoExecute")

    @model_validator(mode="after")
    def _as_kubernetes_takes_it(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration has the operator Exists, which takes no value: leave it out")
        if self.operator == "Equal" and self.key is None:
            raise ValueError("a toleration has the operator Equal, which needs a key: give it, or the operator Exists")
        if self.tolerationSeconds is not None and self.effect != "NoExecute":
            raise ValueError("a toleration has tolerationSeconds, which takes the effect NoExecute: give both or none")
        return self


class PodMonitorOptions(Section):
    """Metrics of the job for a Prometheus that the Prometheus operator runs."""

    namespace: Label = Field(description="where that Prometheus is; only it reaches the metrics")
    labels: dict[LabelName, LabelValue] = Field(
        description="by which it selects a PodMonitor, such as {release: prometheus}"
    )
    interval: str | None = Field(
        None, pattern=r"^[0-9]+(ms|s|m)$", description="between two scrapes, such as 15s; null = that of Prometheus"
    )
    tls_config: dict[str, Any] | None = Field(
        None, description="tlsConfig of the PodMonitor; needed where the job file has metrics.certificate"
    )


class ClusterOptions(Section):
    """How the job runs on the cluster."""

    name: str = Field(description="of the job")
    namespace: Label = Field(description="in which it runs")
    image: str = Field(description="that has the trainer and its PyTorch, with a tag or digest")
    nodes: int = Field(ge=1, le=MOST_NODES, description="number of nodes, each of which runs one pod")
    processes_per_node: int = Field(ge=1, le=1024, description="processes of a pod, each of which has a card")
    cpu: Cpu = Field(description="cores that a pod asks for, such as 128")
    memory: Memory = Field(description="of a pod without its huge pages, such as 800Gi")
    shared_memory: Memory = Field(description="size of /dev/shm, which counts as memory, such as 64Gi")
    huge_pages: HugePages | None = Field(
        None, description="of 2 MiB for the pod, such as 95000Mi; none = none; needed with cards"
    )
    volumes: tuple[Volume, ...] = Field(description="folders of the pods, the first of them for the job's files")

    kind: Literal["trainjob", "jobset"] = Field(
        "trainjob", description="trainjob = Kubeflow Trainer 2.3; jobset = JobSet alone"
    )
    devices: Literal["dra", "plugin", "none"] = Field(
        "dra",
        description="how cards are asked for: dra = a claim for Intel's DRA driver; plugin = habana.ai/gaudi; none = "
        "not at all",
    )
    command: tuple[str, ...] = Field(
        (), description="a script of your own and its arguments, as the pods see it, in place of a job file"
    )
    chdir: Folder | None = Field(None, description="folder in which the command runs; null = the image's")
    allow_partial_nodes: bool = Field(
        False, description="take 2 to 7 cards of a node although nothing chooses a set that the vendor supports"
    )
    max_restarts: int = Field(0, ge=0, le=1000, description="of all pods after a failure; interruptions do not count")
    stop_timeout: int = Field(120, ge=10, le=86400, description="seconds to write a checkpoint and end when stopped")
    threads: int | None = Field(None, ge=1, description="OMP_NUM_THREADS of each process; null = torchrun's default")
    environment: dict[str, Text] = Field({}, description="variables of the processes, shown in the manifests")
    environment_secrets: tuple[Subdomain, ...] = Field(
        (), description="Secrets of the namespace whose entries are variables of the processes"
    )

    queue: Subdomain | None = Field(None, max_length=63, description="Kueue's LocalQueue of the namespace")
    topology_required: LabelName | None = Field(
        None, description="label of nodes that all pods have to have in common, for Kueue"
    )
    topology_preferred: LabelName | None = Field(None, description="the same as a wish")
    pod_monitor: PodMonitorOptions | None = Field(None, description="metrics for Prometheus; null = none")
    network_policy: bool = Field(True, description="let only the job's pods, and Prometheus, reach the job's ports")

    image_pull_secrets: tuple[Subdomain, ...] = Field((), description="Secrets of the registry")
    image_folders: tuple[Folder, ...] = Field((), description="folders of the image that the job file may name")
    node_selector: dict[LabelName, LabelValue] = Field({}, description="labels of the nodes")
    tolerations: tuple[Toleration, ...] = Field((), description="of taints besides Intel's, in Kubernetes' own form")
    service_account: Subdomain | None = Field(None, description="of the pods, which get no token of it")
    run_as_user: int | None = Field(None, ge=0, le=_LAST_ID, description="user id of the processes; null = the image's")
    run_as_group: int | None = Field(
        None, ge=0, le=_LAST_ID, description="group id of the processes; null = the image's"
    )
    fs_group: int | None = Field(
        None, ge=0, le=_LAST_ID, description="group id that owns the volumes; null = no change"
    )
    host_network: bool = Field(False, description="pods have the network of their nodes, beside which no policy holds")
    host_ipc: bool = Field(False, description="pods share the IPC namespace of their nodes")

    @field_validator("image")
    @classmethod
    def _stays_the_same(cls, image: str) -> str:
        last = image.rpartition("/")[2]
        if not _IMAGE.fullmatch(image):
            raise ValueError("has to be the name of an image, in lower-case letters but for the registry and the tag")
        if "@" not in last and (":" not in last or last.endswith((":", ":latest"))):
            raise ValueError("has no tag, or latest, which names another image tomorrow: give a tag or a digest")
        return image

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        paths = [volume.path for volume in self.volumes]
        if not paths:
            raise ValueError("volumes is empty: give at least one, for the job's files")
        for one in paths:
            inside = next((other for other in paths if other != one and one.startswith(f"{other}/")), None)
            if paths.count(one) > 1 or inside is not None:
                raise ValueError(
                    f"volumes has {one} {'below ' + inside if inside else 'twice'}: give each its own path"
                )
        if self.chdir is not None and not self.command:
            raise ValueError("chdir is the folder in which a command runs, and command is not given")
        if self.topology_required is not None and self.topology_preferred is not None:
            raise ValueError("topology_required and topology_preferred are both set: keep one")
        return self


ASKED = {
    "name": "give the job a name, with --name",
    "namespace": "name the namespace in which the job is to run",
    "image": "name the image that has the trainer and its PyTorch, with a tag or digest",
    "nodes": "say on how many nodes it runs, with --nodes",
    "processes_per_node": "say how many processes a node runs, which is the number of its cards",
    "cpu": "say how many cores a pod asks for (kubectl describe node shows what a node has to give)",
    "memory": "say how much memory a pod has (kubectl describe node shows what a node has to give)",
    "shared_memory": "say how large /dev/shm is, which counts as memory",
    "huge_pages": "say how many huge pages a pod has (kubectl describe node shows hugepages-2Mi), or none",
    "volumes": "list the volumes of the pods, the first of them for checkpoints",
}
"""What has no source, and how it is asked for."""

NOT_CARRIED = {
    "spares": "a pod that is lost ends its Job, and the JobSet starts all pods again on nodes that are free",
    "min_nodes": "PET_NNODES is one number, with which all nodes meet: give nodes",
    "head": "pod 0 of the job is the head",
    "head_address": "pod 0 of the job is the head",
    "rdzv_port": "Kubeflow Trainer has the nodes meet at port 29500 of pod 0",
    "user": "give run_as_user",
    "venv": "the trainer is in the image",
    "trainer_version": "the trainer is in the image",
    "container": "give image",
    "config": "give the job file as the argument",
    "node_config": "all pods read one job file: put the values into it",
    "dataset": "set data.source in the job file",
    "data_sets": "set data.directory in the job file, and name the folder in volumes",
    "interruption": "set the section interruption in the job file",
    "environment_files": "a pod reads no files of its node: put the variables into a Secret, and name it in "
    "environment_secrets",
    "cards": "give processes_per_node, of which each has a card, and device in the job file",
    "state": "kubectl starts and removes jobs",
    "timeout": "kubectl wait waits for jobs",
    "start_at_boot": "Kubernetes starts the pods of a node that was booted again",
    "resume_stopped": "kubectl apply starts a job that was deleted",
}
"""Options of the systemd launcher that Kubernetes has no place for, and what to do."""
