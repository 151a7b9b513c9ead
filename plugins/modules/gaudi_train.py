#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_train
short_description: Run a training job as a systemd unit on each of its nodes, or submit it to Slurm
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Starts, watches, stops and removes a training job. On each node the job is one unit
    C(gaudi-train-NAME.service), which runs
    C(torchrun), in the trainer's form of it that knows interruptions, with C(gaudi3-train fit) or with a script of
    your own (O(command)); the nodes of a job find each other at O(head_address).
  - A job is known by its name and by the SHA-256 of its specification, which is all that holds for every node
    alike - the configuration, the nodes, the processes per node, the environment, the user and so on.
  - A job which is finished with the same O(config) is left alone, however it would be launched today. One which
    stopped, failed or was killed is started again and
    continues from its newest checkpoint. One which runs under the same specification is left running, and
    waited for with
    O(state=finished). One which runs under another specification is never touched, the task fails.
  - A job which is not running and gets another specification is started with it. If its O(config) is the same
    (only the way of
    launching differs), it continues from its checkpoints. If its O(config) differs, its folder is first moved
    aside whole, to
    C(NAME.HASH) beside it, where HASH begins the old specification's SHA-256, so that outputs are neither
    mixed nor lost.
  - The O(command) of a job counts as its O(config) does. The content of the script does not.
  - With O(launcher=slurm) the task runs on one host, which has Slurm's commands and O(jobs_dir), a folder that all
    nodes share. C(gaudi3-train slurm) of O(venv) writes the job as a batch script there, and C(sbatch) submits it. A
    job that is queued counts as one that runs.
options:
  name:
    description: Name of the job. Lower-case letters, digits, V(-) and V(_), at most 63.
    type: str
    required: true
  state:
    description:
      - V(started) has the job running, or finished already.
      - V(finished) has the job running, waits until it is finished, showing its progress, and fails if it fails.
      - V(ended) waits in the same way for a job that was started, and never starts it. It needs O(name) alone.
      - V(stopped) asks a running job to stop and waits until it is down. It saves a checkpoint and is
        interrupted; a later start continues.
      - V(absent) stops the job and removes its unit and its configuration. What it wrote stays, unless
        O(purge=true).
    type: str
    choices: [started, finished, ended, stopped, absent]
    default: started
  launcher:
    description:
      - What carries the job. V(systemd) starts a unit, on each node by a task there. V(slurm) submits a batch script,
        by a task on one host, as O(user).
      - If omitted, a job is started by systemd, and stopped, removed and waited for as it was started.
    type: str
    choices: [systemd, slurm]
  slurm:
    description:
      - With O(launcher=slurm), what Slurm is asked for. Of O(nodes) only the number counts then, as Slurm chooses them,
        and O(rdzv_port) only if it is not the default.
      - O(head_address), O(address), O(interface), O(cards), O(secret) and O(passports) are left alone. O(spares),
        O(min_nodes), O(container), O(node_config), O(environment_files), O(modules), O(groups), O(start_at_boot),
        O(rejoin) and O(data_sets) are refused, as Slurm has no place for them.
    type: dict
    suboptions:
      time:
        description:
          - Limit, as text in quotes, such as V("24:00:00"). The job saves before it and goes back into the queue.
        type: raw
        required: true
      cpu: {description: Processors that the job has on a node., type: int, required: true}
      gres: {description: "What Slurm calls a card, C(gpu:gaudi3) if omitted. V(none) asks for none.", type: str}
      partition: {description: "The partition. If omitted, the cluster's default.", type: str}
      account: {description: "The account. If omitted, that of O(user).", type: str}
      qos: {description: "The quality of service. If omitted, the cluster's default.", type: str}
      reservation: {description: A reservation., type: str}
      constraint: {description: Features that the nodes have., type: str}
      exclude: {description: Nodes that the job does not get., type: str}
      exclusive: {description: Whether the job shares its nodes with no other., type: bool}
      memory: {description: "Memory of a node, such as V(800G).", type: str}
      options: {description: Further options of C(sbatch)., type: list, elements: str}
      setup: {description: Lines of the script before the job starts., type: list, elements: str}
      requeue: {description: Whether an interrupted job goes back into the queue; it does if omitted., type: bool}
      allow_partial_nodes:
        description: Take numbers of cards that the vendor does not support together.
        type: bool
      interface: {description: "Network interface on which nodes meet. If omitted, by their names.", type: str}
  config:
    description:
      - Configuration of the trainer, as C(gaudi3-train config) prints it; what is omitted has the trainer's
        default.
      - RV(job.directory) is always its C(output_dir).
    type: dict
  command:
    description:
      - A script of your own and its arguments, which runs in place of the trainer - a C(train.py) with Lightning's
        Trainer, for example. It runs as each of the O(processes_per_node) processes, under the same unit, launcher and
        rendezvous.
      - A first word that ends with C(.py) is run by the Python of O(venv), any other is a program. It must be on every
        node, and not below C(/tmp) or C(/var/tmp), of which a job has its own.
      - The environment has E(GAUDI3_JOB_DIRECTORY), the job's folder (RV(job.directory)), where the trainer's callbacks
        keep checkpoints and C(status.json).
      - A process that ends with 75 is interrupted, and continues when the job is started again. An exit status of 0
        means that the script is finished.
    type: list
    elements: str
  chdir:
    description: Folder on the node that O(command) runs in. If omitted, that of the job.
    type: path
  node_config:
    description:
      - Configuration of the trainer for this node alone, merged over O(config), such as the address at which
        metrics are served.
      - No part of the specification, so that it may differ from node to node.
    type: dict
  nodes:
    description: Names of all nodes of the job. Needed with O(state=started) and O(state=finished).
    type: list
    elements: str
    default: []
  head_address:
    description:
      - Address or name at which all nodes reach the first one, where they meet. Needed with O(state=started)
        and O(state=finished).
    type: str
  is_head:
    description: Whether this node is the one at O(head_address). If omitted, torchrun finds out by resolving
      names.
    type: bool
  address:
    description: This node's own address on the cluster's network. If omitted, torchrun finds out by resolving
      the node's name.
    type: str
  interface:
    description:
      - Network interface on which this node meets the others, as M(gaudi3.scale.gaudi_train_node_info) finds it. It
        becomes E(GLOO_SOCKET_IFNAME) and E(HCCL_SOCKET_IFNAME) of the job, unless O(environment) or one of
        O(environment_files) has them.
      - If omitted, both libraries take the interface of the address under which the node finds its own name, which is
        the loopback one on many systems.
    type: str
  groups:
    description: Groups of this node which the job's user gets beside its own, to open the device files of the cards.
    type: list
    elements: str
    default: []
  modules:
    description:
      - Module ids of the cards for the processes of this node, in their order, as E(HABANA_VISIBLE_MODULES) names them.
      - If omitted, process N of a node takes the card with module id N.
    type: list
    elements: int
    default: []
  rdzv_port:
    description: TCP port of the rendezvous at O(head_address).
    type: int
    default: 29400
  processes_per_node:
    description: Processes on each node, which is one for each card to be used.
    type: int
    default: 1
  cards:
    description: Number of cards of this node. When given, more O(processes_per_node) than cards is refused.
    type: int
  max_restarts:
    description: How often torchrun may restart the job's processes after a failure, before the job counts as
      failed.
    type: int
    default: 0
  spares:
    description:
      - How many of O(nodes) wait until another one is lost, and then take its place. Any but the one at
        O(head_address), where the rendezvous is.
      - Needs O(max_restarts) of at least 1.
    type: int
    default: 0
  min_nodes:
    description:
      - With how many nodes the job continues when others are lost and there is no spare. If omitted, all that are
        no spares are needed. Each step then takes as many samples as before, with more accumulation.
      - Needs O(max_restarts) of at least 1.
    type: int
  threads:
    description: Value of E(OMP_NUM_THREADS) for each process. If omitted, torchrun chooses 1 where there are
      several processes.
    type: int
  environment:
    description:
      - Environment variables of the job. They override those of O(environment_files) and of the module itself.
      - They are shown in the unit, so secrets belong into one of O(environment_files) instead. What looks like one, by
        its name or its value, is refused, in O(command), O(config) and O(node_config) as well.
    type: dict
    default: {}
  environment_files:
    description:
      - Files with environment variables on the node, read in this order by systemd. One that is missing is skipped.
      - C(/etc/gaudi3-scale/runtime.env), which M(gaudi3.scale.gaudi_runtime_environment) writes, is always read first.
    type: list
    elements: path
    default: [/etc/gaudi3-scale/fabric.env]
  user:
    description: User as whom the job runs. It must exist.
    type: str
    default: gaudi3-scale
  venv:
    description:
      - Virtual environment on the node, in which the trainer is installed. That of a O(container) was made in its image
        and is the only thing in its folder besides the trainer.
    type: path
    default: /opt/gaudi3-scale/venv
  container:
    description:
      - Run the job in a container, whose engine's client is the unit's process. If omitted, it runs on the node itself.
      - The job's folder is the only one that the job may write to. Its user is O(user), with one capability
        (C(SYS_NICE)); network, IPC and limits are the node's. C(/etc/gaudi3-scale/runtime.env) is not read, as the
        vendor's variables are in the image.
      - O(environment_files) are read when the job is started, and what they set is kept in C(container.env) beside the
        job's configuration.
    type: dict
    suboptions:
      engine: {description: The engine., type: str, choices: [podman, docker], default: podman}
      image:
        description: Name of the image, with a tag, a digest or both. It must be on the node already.
        type: str
        required: true
      folders:
        description:
          - Folders of the node that the job may read, under their own paths. Those of O(command) come by themselves.
        type: list
        elements: path
        default: []
      cards: {description: Whether the job gets the cards of the node., type: bool, default: true}
  data_sets:
    description:
      - Folders of sets of training data that M(gaudi3.scale.gaudi_dataset) brought. While the job runs, no other set
        takes their place.
    type: list
    elements: path
    default: []
  stop_timeout:
    description: Seconds which a job gets to write a checkpoint and end, when it is stopped. After that it is killed.
    type: int
    default: 120
  trainer_version:
    description: Any text which is to be part of the specification, such as the trainer's version.
    type: str
  rejoin:
    description:
      - Start a finished job once more with the same specification, because it is not finished on another of
        its nodes,
        which would wait in vain for this one. The trainer then ends at once where there is nothing left to
        do.
    type: bool
    default: false
  resume_stopped:
    description:
      - Start a job again that was stopped with O(state=stopped), and continue from its newest checkpoint. V(false)
        leaves it stopped.
    type: bool
    default: true
  secret:
    description:
      - The cluster's secret, at least 32 letters, from which each job of several nodes gets one of its own. By it the
        job's nodes know each other, and only a node that has it joins the job.
      - If omitted, it is kept as C(trainer_job_secret) in O(secrets_dir), and made there where it is missing,
        which counts as no change of the node. A job with one node makes up its own at each start.
      - On the node it is a file with mode 0640 that root and the job's group read. A job that runs keeps its own.
    type: str
  secrets_dir:
    description:
      - Folder on the controller in which O(secret) is kept, outside of the inventory.
      - The default is the folder that P(gaudi3.scale.secrets_dir#lookup) names.
    type: path
  passports:
    description:
      - Ask for the node's passport, as M(gaudi3.scale.gaudi_passport) writes it on the controller, before the job is
        started. If omitted, no passport is asked for.
    type: dict
    suboptions:
      mode:
        description:
          - V(enforce) refuses a node without a valid one. V(shadow) warns of it, on sites that have passports.
        type: str
        choices: ["off", shadow, enforce]
        default: shadow
      folder: {description: Folder of the passports and of their key on the controller., type: path, required: true}
      depth:
        description: The least depth of the examination.
        type: str
        choices: [quick, standard, deep]
        default: quick
      executable: {description: The C(hl-smi) that says the present versions., type: path, default: hl-smi}
      timeout: {description: Seconds to wait for one call of it., type: int, default: 30}
      problem: {description: What is wrong with the passport; the controller sets it., type: str, default: ""}
      versions: {description: What the passport holds for; the controller sets it., type: dict, default: {}}
  trace_parent:
    description:
      - What the spans of a job belong to that sends traces (E(OTEL_TRACES_EXPORTER) is V(otlp) in O(environment)), as
        the W3C writes it. It counts at the first start. Later ones continue the trace of the first.
      - If omitted, it is the variable E(TRACEPARENT) of the controller, which C(gaudi3-deploy) and the callback
        P(gaudi3.scale.traces#callback) set.
    type: str
  ended_on:
    description:
      - With O(state=finished) and O(state=ended), the node on which the job has ended already. A node whose unit then
        still runs gets 30 seconds to end by itself, after which the task fails.
    type: str
  purge:
    description: With O(state=absent), also remove all that the job wrote, checkpoints included. Folders that
      were moved aside stay.
    type: bool
    default: false
  start_at_boot:
    description:
      - Whether a boot of the node starts the job again, from its newest checkpoint, unless it was finished or was
        stopped with O(state=stopped). Nodes that still run need O(max_restarts) of at least 1, to wait for the one that
        comes back.
      - Takes effect when the job is started the next time.
    type: bool
    default: false
  keep_archives:
    description: How many folders of this job that were moved aside for another specification are kept, checkpoints
      included. When one more is moved aside, the longest moved are removed once the job has started. If omitted, all
      are kept.
    type: int
  peers:
    description:
      - With O(state=finished) or O(state=ended) on the head, the other nodes of the job, by name, each with a list of
        the addresses at which the inventory has it. Until the job trains, those that have not come yet are named.
    type: dict
    default: {}
  poll_interval:
    description: Seconds between two looks at the job with O(state=finished) and O(state=ended).
    type: float
    default: 5.0
  timeout:
    description: Seconds to wait with O(state=finished) and O(state=ended). After that the task fails and the job is
      left running. V(0) waits without end.
    type: int
    default: 3600
  lines:
    description: How many of the last lines of a failed job's log are returned.
    type: int
    default: 20
  jobs_dir:
    description: Folder on the node below which each job has its own.
    type: path
    default: /var/lib/gaudi3-scale/jobs
  unit_dir: {description: Folder of the units., type: path, default: /etc/systemd/system}
  systemctl_executable: {description: The C(systemctl) to use., type: path, default: systemctl}
  journalctl_executable: {description: The C(journalctl) to use., type: path, default: journalctl}
attributes:
  check_mode:
    description: Reports what would change. The user and the virtual environment need not exist yet.
    support: full
  diff_mode:
    description: Shows the job's configuration and unit, or its batch script.
    support: full
  platform:
    description: Linux with systemd, or with Slurm's commands.
    platforms: linux
    support: full
notes:
  - The nodes of a job wait for each other, and each node that is waited for takes one of C(forks). Run the module with
    O(state=started) on all nodes first, then with O(state=ended) on the head alone, and then on the others with
    O(ended_on), as the role P(gaudi3.scale.trainer#role) does.
  - The waiting happens on the controller. Breaking it off leaves the job running, and the same task waits on.
seealso:
  - module: gaudi3.scale.gaudi_train_info
"""

EXAMPLES = r"""
- name: Train, and wait until it is done
  gaudi3.scale.gaudi_train:
    name: demo
    state: finished
    nodes: "{{ groups['gaudi'] }}"
    head_address: 10.0.0.11
    processes_per_node: 8
    config:
      model: {hidden_size: 1024, layers: 12}
      train: {max_steps: 2000}

- name: Wait for a job that was started, on its head
  gaudi3.scale.gaudi_train:
    name: demo
    state: ended
    timeout: 86400

- name: Run a script of your own in the same way
  gaudi3.scale.gaudi_train:
    name: mine
    state: finished
    nodes: "{{ groups['gaudi'] }}"
    head_address: 10.0.0.11
    processes_per_node: 8
    command: [train.py, --steps, "2000"]
    chdir: /srv/mine

- name: Submit it to Slurm
  gaudi3.scale.gaudi_train:
    name: demo
    launcher: slurm
    slurm: {time: "24:00:00", cpu: 128, partition: gaudi}
    nodes: "{{ groups['gaudi'] }}"
    processes_per_node: 8
    jobs_dir: /shared/jobs
    config:
      model: {hidden_size: 1024, layers: 12}
      train: {max_steps: 2000}
  delegate_to: login-1
  run_once: true

- name: Stop it, keeping the checkpoints
  gaudi3.scale.gaudi_train:
    name: demo
    state: stopped

- name: Remove it with all it wrote
  gaudi3.scale.gaudi_train:
    name: demo
    state: absent
    purge: true
"""

RETURN = r"""
job:
  description: The job as this node has it, after what was done (in check mode, as it was found).
  returned: success, and failures after the job was looked at
  type: dict
  contains:
    name: {description: "Name of the job.", type: str, sample: demo}
    state:
      description:
        - One of V(absent), V(stopped), V(running), V(finished), V(failed), V(interrupted) and V(spare); of a job of
          Slurm, also V(queued), and V(unknown) where Slurm does not answer.
        - V(interrupted) left in order because it was told to, by a signal, a file or its cloud, and continues
          when it is started again. V(spare) was not needed on this node.
      type: str
      sample: finished
    slurm:
      description:
        - Of a job that was submitted to Slurm, which job it is there, with its state, the reason why it waits and its
          nodes; all but the number are empty once Slurm has forgotten it. Such a job has no RV(job.unit),
          RV(job.active_state), RV(job.sub_state) and RV(job.result).
      type: dict
      sample: {job: 17, state: PENDING, reason: Resources, nodes: ""}
    unit: {description: "The systemd unit.", type: str, sample: gaudi-train-demo.service}
    directory:
      description: Folder of the job's output on the node, with its status, checkpoints and metrics.
      type: str
      sample: /var/lib/gaudi3-scale/jobs/demo
    command:
      description: The script and its arguments with which the job was last started; null for the trainer's own jobs.
      type: list
      elements: str
      sample: [train.py, --steps, "2000"]
    spec_sha256:
      description: SHA-256 of the specification with which the job was last started; null if it never was.
      type: str
      sample: 5d1c7a8e0f0a4f4b8c5b6a0f3f1a2b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a
    active_state: {description: "The unit's state in systemd's words.", type: str, sample: inactive}
    sub_state: {description: "The unit's finer state in systemd's words.", type: str, sample: dead}
    result:
      description: How the unit's last run ended in systemd's words. Forgotten at a reboot.
      type: str
      sample: success
    exit_status:
      description: Exit status of the unit's last run, or the number of the signal that ended it.
      type: int
      sample: 0
    ending:
      description: How the unit's last run ended, in words; null while it runs.
      type: str
      sample: exit status 0
    status:
      description:
        - What the trainer last wrote to C(status.json); null before it wrote anything since the job runs.
        - Of a O(command) the launcher writes the state. The rest is there if the script has one of the trainer's
          callbacks.
      type: dict
      contains:
        schema: {description: "Version of this structure.", type: int, sample: 1}
        state:
          description:
            - The trainer's own state - starting, running, finished, failed or interrupted. One that was
              killed stays. On a spare node that was not needed it is spare, and the rest is missing.
          type: str
          sample: finished
        step: {description: "Steps done.", type: int, sample: 200}
        max_steps: {description: "Steps to do.", type: int, sample: 200}
        loss: {description: "Training loss of the last logged step.", type: float, sample: 2.31}
        first_loss:
          {description: "Training loss of the first logged step of the job.", type: float, sample: 5.55}
        validation_loss: {description: "Loss on held-out data, once training ended.", type: float, sample: 2.4}
        baseline_loss:
          description: Loss of knowing only how frequent each byte is, in nats per byte. Learning is below it.
          type: float
          sample: 3.1
        tokens_per_second:
          {description: "Tokens per second of all processes together.", type: float, sample: 5120.0}
        tokens: {description: "Tokens trained on so far.", type: int, sample: 819200}
        world_size: {description: "Processes of all nodes.", type: int, sample: 4}
        device: {description: "Kind of device trained on.", type: str, sample: hpu}
        hardware_name:
          description: What the device calls itself, or null where it is no hardware or not known yet.
          type: str
          sample: GAUDI3
        simulated:
          description: Whether the device is a simulation of a card, or null where that is not known yet.
          type: bool
          sample: false
        software:
          description: Versions of Python, PyTorch, Lightning and the vendor's plugin; null where not known yet.
          type: dict
          sample: {python: 3.12.3, torch: 2.9.0a0+git3f9b6a1, lightning: 2.6.0, plugin: 1.23.0.695}
        precision:
          description: Precision that the job computes in, also where it is C(auto) in the configuration.
          type: str
          sample: bf16-mixed
        weights:
          description: What the training began from, V(folder) or V(random); null where not known yet.
          type: str
          sample: random
        checkpoint:
          description: Newest complete checkpoint.
          type: str
          sample: /var/lib/gaudi3-scale/jobs/demo/checkpoints/step-200
        checkpoint_step: {description: "Step of that checkpoint.", type: int, sample: 200}
        resumed_from_step:
          description: Step from which the last start continued, or null if it began at the beginning.
          type: int
          sample: 120
        interruption:
          description: Why the trainer was interrupted and what was saved, or null.
          type: str
          sample: "SIGTERM was sent to this process (rank 0): the checkpoint of step 120 is committed"
        hang:
          description:
            - Who held up the others when a job of several processes got no further, or null.
            - The job's user may write anything there, so that no more follows from it than a test of an idle node.
          type: dict
          contains:
            sentence:
              description: What is known, for readers.
              type: str
              sample: Rank 37 on gaudi-5 did not enter all_reduce 4711 of shape [4096, 4096] bfloat16; it has stood in
                dataloader.next for 41 s; the other 63 ranks wait.
            kind: {description: What kind of a hang it is., type: str, sample: loader}
            certain: {description: Whether no other reading of the processes' notes is left., type: bool, sample: true}
            ranks: {description: The ranks that are named., type: list, elements: int, sample: [37]}
            nodes: {description: Their nodes as they call themselves., type: list, elements: str, sample: [gaudi-5]}
            at: {description: "When that was found, in seconds since 1970.", type: float, sample: 1767225660.5}
        started_at:
          {description: "When the trainer started, in seconds since 1970.", type: float, sample: 1767225600.0}
        updated_at:
          description: When the trainer wrote this, in seconds since 1970.
          type: float
          sample: 1767225660.5
        error: {description: "Why the trainer failed, or null.", type: str, sample: null}
pending:
  description:
    - Whether the job was found in another state than the one that was asked for. A task that only asks, with the
      keywords C(check_mode=true) and C(changed_when=false), tells by it what there is to do.
  returned: success, and failures after the job was looked at
  type: bool
  sample: false
archived:
  description: Where the folder of the earlier specification was moved (in check mode, would be moved); null
    if it was not.
  returned: success
  type: str
  sample: /var/lib/gaudi3-scale/jobs/demo.5d1c7a8e
removed_archives:
  description: Folders that were removed (in check mode, would be removed) because of O(keep_archives).
  returned: success
  type: list
  elements: str
  sample: [/var/lib/gaudi3-scale/jobs/demo.0c3f61aa]
log:
  description: The last lines of the job's log.
  returned: when the job failed
  type: list
  elements: str
  sample: ["ValueError: the dataset is empty"]
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import train


def main() -> None:
    """Run the module."""
    # The job's user reads the folders on the way to its own, whatever the umask of the one who starts it.
    os.umask(0o022)
    module = AnsibleModule(argument_spec=train.ARGUMENT_SPEC, **train.RULES, supports_check_mode=True)
    module.exit_json(**train.run(module))


if __name__ == "__main__":
    main()
