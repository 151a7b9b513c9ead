# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Everything that is decided for one host, by the names under which roles and playbooks ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import (
    addresses,
    backup,
    data,
    drivers,
    exporters,
    fabric,
    firewall,
    job,
    job_progress,
    logs,
    mirror,
    pytorch,
    serving,
    shipped,
    slurm,
    slurm_cluster,
    tuning,
)
from .model import Values

#: Lookup ``gaudi3.scale.plan`` returns these, and a host's plan has them without a template.
DECISIONS: Mapping[str, Callable[[Values], Any]] = {
    "backup": backup.decide,
    "data": data.decide,
    "fabric": fabric.decide,
    "grafana": addresses.decide_grafana,
    "firewall_addresses": firewall.addresses,
    "firewall_groups": firewall.closed,
    "firewall_hosts": firewall.known_addresses,
    "hpu_exporter": exporters.decide_cards,
    "hpu_exporter_sources": exporters.sources,
    "job_is_over": job_progress.is_over,
    "logs": logs.decide,
    "node_exporter": exporters.decide_node,
    "node_health_program": shipped.health_program,
    "nodes_known": job_progress.known,
    "pytorch": pytorch.decide,
    "pytorch_index_plain_http": mirror.index_plain_http,
    "pytorch_lock": mirror.tarball_lock,
    "pytorch_packages": pytorch.packages,
    "pytorch_requirements": shipped.requirements,
    "pytorch_tarballs": pytorch.tarballs_of_all,
    "serving": serving.decide,
    "serving_index": addresses.decide_serving_index,
    "serving_pip_index_plain_http": mirror.serving_pip_index_plain_http,
    "serving_names": serving.names,
    "serving_files": serving.certificate_files,
    "slurm": slurm_cluster.decide,
    "slurm_accounting": slurm_cluster.accounting,
    "slurm_cluster_files": slurm_cluster.files,
    "slurm_controller_files": slurm_cluster.controller_files,
    "slurm_files": slurm.files,
    "slurm_munge_key": slurm_cluster.munge_key,
    "slurm_problem": slurm.problem,
    "slurm_remark": slurm.remark,
    "synapseai": drivers.decide,
    "trainer": job.decide,
    "trainer_again": job_progress.again,
    "trainer_awaited": job_progress.awaited,
    "trainer_choice": job_progress.choose,
    "trainer_index_plain_http": mirror.trainer_index_plain_http,
    "trainer_index_url": mirror.trainer_index_url,
    "trainer_list": job.whole_list,
    "trainer_options": job_progress.options,
    "trainer_peers": job.peers,
    "trainer_places": job_progress.places,
    "trainer_progress": job_progress.progress,
    "trainer_refusal": job_progress.refusal,
    "trainer_refusal_at_start": job_progress.refusal_at_start,
    "tuning": tuning.decide,
    "tuning_remarks": tuning.remarks_of_all,
    "tuning_translated": tuning.translated,
    "waiting_for_reboot": tuning.waiting,
}
