#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_monitoring takes; it decides on the controller, and other modules do the work on the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_monitoring
short_description: "Internal to the collection: do one step of a service of a monitoring host"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the variables of the service's role, makes or takes its passwords and its certificate on the controller, and
    has M(gaudi3.scale.gaudi_claim) and M(gaudi3.scale.gaudi_service) do the rest on the host.
  - No answer has a secret in it, and none stands in the journal of the host. A difference of a file with secrets shows
    that it is another.
options:
  service:
    description: The service, by the name of its role.
    type: str
    choices: [prometheus, alertmanager, grafana, watch]
    required: true
  step:
    description:
      - V(preflight) refuses what the service cannot run with, and changes nothing. V(cluster) refuses a host that
        watches another cluster.
      - V(claim) makes passwords and certificate, and takes the files of the service, before its package is installed.
        V(targets) writes the targets of Prometheus alone.
      - V(run) writes all other files, records them, and starts, restarts or reloads the service where it does not run
        with them. V(verify) waits until the service answers.
      - V(remove) removes what was written, and puts back what was taken over.
    type: str
    choices: [preflight, cluster, claim, targets, run, verify, remove]
    required: true
  package_changed:
    description: Whether this run has changed the package, for the prediction of check mode.
    type: bool
    default: false
attributes:
  action:
    description: Runs modules on the host.
    support: full
  check_mode:
    description: Predicts what would be done, and makes no secret.
    support: full
  diff_mode:
    description: Shows the files that are written, without secrets.
    support: full
  platform:
    description: Debian and Ubuntu with systemd.
    platforms: debian
    support: full
seealso:
  - module: gaudi3.scale.gaudi_host_plan
  - module: gaudi3.scale.gaudi_service
"""

EXAMPLES = r"""
- name: Write the files and run Prometheus with them
  gaudi3.scale.gaudi_monitoring:
    service: prometheus
    step: run
"""

RETURN = r"""
said:
  description: What a person has to know; empty where that is nothing.
  returned: with O(step=claim) and O(step=verify)
  type: str
  sample: ""
done:
  description: The verbs of systemctl that were needed, in their order.
  returned: with O(step=run)
  type: list
  elements: str
  sample: [enable, start]
in_use:
  description: Whether the service was in use before the collection came.
  returned: with O(step=claim) and O(step=remove)
  type: bool
  sample: false
restored:
  description: Files that were put back.
  returned: with O(step=remove)
  type: list
  elements: str
  sample: [/etc/default/prometheus]
"""

from ansible.module_utils.basic import AnsibleModule

SERVICES = ["prometheus", "alertmanager", "grafana", "watch"]
STEPS = ["preflight", "cluster", "claim", "targets", "run", "verify", "remove"]


def main() -> None:
    """Refuse to run on a host."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "choices": SERVICES, "required": True},
            "step": {"type": "str", "choices": STEPS, "required": True},
            "package_changed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="gaudi_monitoring runs on the controller: call it as gaudi3.scale.gaudi_monitoring.")


if __name__ == "__main__":
    main()
