"""The pod of a node, and the Job that has one for each node."""

from __future__ import annotations

import re
from typing import Any

from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.patience import SHUTDOWN_TIMEOUT
from gaudi3_scale.kubernetes.checks import MEETING_PORT
from gaudi3_scale.kubernetes.cluster import Volume
from gaudi3_scale.kubernetes.kubernetes_job import GIVEN, KubernetesJob
from gaudi3_scale.launcher_checks import LAUNCHER_SECONDS
from gaudi3_scale.own_script import DIRECTORY

NODE = "node"
"""What Kubeflow Trainer has the container and the replicated job called."""
CARDS = "cards"
FILE = "job.yml"
PLUGIN_RESOURCE = "habana.ai/gaudi"
TAINT = "intel.feature.node.kubernetes.io/gaudi"
"""Of nodes with cards; the DaemonSet of Intel's DRA driver tolerates it."""
GRACE = 60
"""Seconds that a pod has beyond stop_timeout, so that the launcher ends before the kubelet kills it."""
REFUSED = 2
"""Exit code of a job whose description is wrong."""
COMMAND = ["python3", "-m", "gaudi3_scale.launch"]


def claim_name(job: KubernetesJob) -> str:
    """Of the template of claims."""
    return f"{job.options.name}-{CARDS}"


def config_map_name(job: KubernetesJob) -> str:
    """Of the ConfigMap with the job file."""
    return f"{job.options.name}-job"


def arguments(job: KubernetesJob) -> list[str]:
    """Of the launcher: what it starts."""
    command = [_literal(word) for word in job.options.command]
    if not command:
        return ["--no-python", "gaudi3-train", "fit", "--config", f"{GIVEN}/{FILE}"]
    return ["--no-python", *(["python3"] if command[0].endswith(".py") else []), *command]


def _literal(text: str) -> str:
    """A text in whose $(NAME) Kubernetes puts no variable."""
    return text.replace("$(", "$$(")


def variables(job: KubernetesJob) -> list[dict[str, Any]]:
    """Of the processes."""
    options = job.options
    own = {
        "PYTHONUNBUFFERED": "1",
        SHUTDOWN_TIMEOUT: str(options.stop_timeout - LAUNCHER_SECONDS),
    }
    if job.on_cards:
        own["HABANA_LOGS"] = f"{job.config.output_dir}/habana_logs"
    if options.command:
        own[DIRECTORY] = str(job.config.output_dir)
    if options.threads is not None:
        own["OMP_NUM_THREADS"] = str(options.threads)
    if options.run_as_user:
        own["HOME"] = "/tmp"  # the image need not know the user
    given = {name: _literal(value) for name, value in options.environment.items()}
    return [{"name": name, "value": value} for name, value in {**own, **given}.items()]


def meeting(job: KubernetesJob) -> list[dict[str, Any]]:
    """Variables by which the nodes meet, where no Kubeflow Trainer sets them."""
    options = job.options
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    return [
        {"name": "PET_NNODES", "value": str(options.nodes)},
        {"name": "PET_NPROC_PER_NODE", "value": str(options.processes_per_node)},
        {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}},
        {"name": "PET_MASTER_ADDR", "value": f"{options.name}-{NODE}-0-0.{options.name}"},
        {"name": "PET_MASTER_PORT", "value": str(MEETING_PORT)},
    ]


def replicated_job(job: KubernetesJob, runs: dict[str, Any], counts: dict[str, Any]) -> dict[str, Any]:
    """One Job with a pod for each node; `runs` is what the container runs, `counts` how many pods the Job has."""
    rules: list[dict[str, Any]] = [
        {"action": "FailJob", "onExitCodes": {"containerName": NODE, "operator": "In", "values": [code]}}
        for code in (REFUSED, EXIT_CODE)
    ]
    rules.append({"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]})
    return {
        "completionMode": "Indexed",
        **counts,
        "backoffLimit": 0,  # a pod that starts anew alone would leave the others waiting
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": rules},
        "template": {"metadata": _metadata(job), "spec": _pod(job, runs)},
    }


def failure_policy(job: KubernetesJob) -> dict[str, Any]:
    """When all pods start again: a JobSet sees the message of the Job that failed, which has the exit code."""
    again = "RestartJobSetAndIgnoreMaxRestarts"
    rules = (("refused", "FailJobSet", f"exit code {REFUSED} "), ("interrupted", again, f"exit code {EXIT_CODE} "),
             ("disrupted", again, "DisruptionTarget"))  # fmt: skip
    return {
        "maxRestarts": job.options.max_restarts,
        "restartStrategy": "BlockingRecreate",  # the cards are free once all old pods are gone
        "rules": [
            {
                "name": name,
                "action": action,
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": [pattern],
            }
            for name, action, pattern in rules
        ],
    }


def _metadata(job: KubernetesJob) -> dict[str, Any]:
    options = job.options
    wanted = {"required": options.topology_required, "preferred": options.topology_preferred}
    topology = {f"kueue.x-k8s.io/podset-{how}-topology": label for how, label in wanted.items() if label is not None}
    return {"labels": job.labels, **({"annotations": topology} if topology else {})}


def _pod(job: KubernetesJob, runs: dict[str, Any]) -> dict[str, Any]:
    options = job.options
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": options.stop_timeout + GRACE,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,  # a Service called master would set MASTER_PORT
    }
    if options.service_account is not None:
        pod["serviceAccountName"] = options.service_account
    if options.host_network:
        pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if options.host_ipc:
        pod["hostIPC"] = True
    ids = {"runAsUser": options.run_as_user, "runAsGroup": options.run_as_group, "fsGroup": options.fs_group}
    given: dict[str, Any] = {name: each for name, each in ids.items() if each is not None}
    if options.fs_group is not None:  # not every file of every checkpoint, each time that a pod starts
        given["fsGroupChangePolicy"] = "OnRootMismatch"
    if given:
        pod["securityContext"] = given
    if options.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in options.image_pull_secrets]
    if options.node_selector:
        pod["nodeSelector"] = dict(options.node_selector)
    taint = {"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}
    tolerations: list[dict[str, Any]] = [taint] if job.on_cards else []
    if tolerations or options.tolerations:
        pod["tolerations"] = [*tolerations, *(each.model_dump(exclude_none=True) for each in options.tolerations)]
    if job.on_cards and options.devices == "dra":
        pod["resourceClaims"] = [{"name": CARDS, "resourceClaimTemplateName": claim_name(job)}]
    return {**pod, "containers": [_container(job, runs)], "volumes": _volumes(job)}


def _container(job: KubernetesJob, runs: dict[str, Any]) -> dict[str, Any]:
    options = job.options
    container: dict[str, Any] = {"name": NODE, "image": options.image, **runs}
    if options.chdir is not None:
        container["workingDir"] = options.chdir
    if options.environment_secrets:
        container["envFrom"] = [{"secretRef": {"name": name}} for name in options.environment_secrets]
    if job.metrics_port is not None:
        container["ports"] = [{"name": "metrics", "containerPort": job.metrics_port, "protocol": "TCP"}]
    container["securityContext"] = {"allowPrivilegeEscalation": False}
    if job.on_cards:  # of the vendor's example
        container["securityContext"]["capabilities"] = {"add": ["SYS_NICE"]}
    limits = {"memory": options.memory}
    if job.huge_pages is not None:
        limits["hugepages-2Mi"] = job.huge_pages
    if job.on_cards and options.devices == "plugin":
        limits[PLUGIN_RESOURCE] = str(options.processes_per_node)
    claims = {"claims": [{"name": CARDS}]} if job.on_cards and options.devices == "dra" else {}
    # Processors have no limit, which would stop the processes for a part of each tenth of a second.
    container["resources"] = {**claims, "requests": {"cpu": options.cpu, **limits}, "limits": limits}
    mounts: list[dict[str, Any]] = [{"name": "shm", "mountPath": "/dev/shm"}]
    if job.text is not None:
        mounts.insert(0, {"name": "job", "mountPath": GIVEN, "readOnly": True})
    if job.huge_pages is not None:
        mounts.append({"name": "hugepages", "mountPath": "/dev/hugepages"})
    for name, volume in _named(job):
        read_only = {"readOnly": True} if volume.read_only else {}
        mounts.append({"name": name, "mountPath": volume.path, **read_only})
    return {**container, "volumeMounts": mounts}


def _volumes(job: KubernetesJob) -> list[dict[str, Any]]:
    memory = {"medium": "Memory", "sizeLimit": job.options.shared_memory}
    found: list[dict[str, Any]] = [{"name": "shm", "emptyDir": memory}]
    if job.text is not None:
        found.insert(0, {"name": "job", "configMap": {"name": config_map_name(job)}})
    if job.huge_pages is not None:
        found.append({"name": "hugepages", "emptyDir": {"medium": "HugePages-2Mi"}})
    return [*found, *({"name": name, **_source(volume)} for name, volume in _named(job))]


def _named(job: KubernetesJob) -> list[tuple[str, Volume]]:
    """The cluster's volumes, each with a name that says where it is."""
    found: dict[str, Volume] = {}
    for volume in job.options.volumes:
        name = re.sub(r"[^a-z0-9]+", "-", volume.path.lower()).strip("-")[:48].strip("-") or "volume"
        while name in found or name in ("job", "shm", "hugepages"):
            name += "-x"
        found[name] = volume
    return list(found.items())


def _source(volume: Volume) -> dict[str, Any]:
    if volume.claim is not None:
        read_only = {"readOnly": True} if volume.access == "ReadOnlyMany" else {}
        return {"persistentVolumeClaim": {"claimName": volume.claim, **read_only}}
    if volume.secret is not None:
        return {"secret": {"secretName": volume.secret, "defaultMode": 0o400}}
    if volume.config_map is not None:
        return {"configMap": {"name": volume.config_map}}
    return {"hostPath": {"path": volume.host_path, "type": "Directory"}}
