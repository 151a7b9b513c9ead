"""The way to the nodes: ssh's configuration, keys that are learnt once, an inventory that runs nothing of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import listed
from gaudi3_deploy import collected, jobs, results, site, ssh, watchdog_timer
from gaudi3_deploy.commands.reach import made
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment

OUTPUTS: dict[str, Any] = {
    "cluster_endpoints": {
        "demo-01": {
            "role": "head", "private_ip": "10.42.16.4", "connect_to": "10.42.16.4", "instance_id": "i-1",
            "ssh_user": "ubuntu",
        },
        "demo-02": {
            "role": "worker", "private_ip": "10.42.16.5", "connect_to": "i-2", "instance_id": "i-2", "ssh_port": 2222,
        },
        "demo-monitor": {"role": "monitor", "private_ip": "10.42.16.6", "instance_id": "i-3"},
    },
    "cluster": {
        "name": "demo", "cloud": "aws", "region": "us-east-1", "node_names": ["demo-01", "demo-02"],
        "jump_host": "ops@198.51.100.7", "connection": "direct",
    },
}  # fmt: skip


def with_node(name: str, **more: Any) -> dict[str, Any]:
    """The outputs, where more is said of a machine."""
    endpoints = OUTPUTS["cluster_endpoints"]
    return {**OUTPUTS, "cluster_endpoints": {**endpoints, name: {**endpoints[name], **more}}}


#: A stand-in for ssh: what each node answers is in a folder, and each call is noted there.
SSH = """#!{python}
import json, pathlib, sys
here = pathlib.Path({folder!r})
arguments = sys.argv[1:]
config = [value for option, value in zip(arguments, arguments[1:]) if option == "-F"][-1]
flags, rest = [], list(arguments)
while rest and rest[0].startswith("-"):
    flags.append(rest[:2]); rest = rest[2:]
node, command = rest[0], " ".join(rest[1:])
text = pathlib.Path(config).read_text()
strict = text.split("StrictHostKeyChecking ")[1].split()[0]
given = sys.stdin.read() if command == "sh -s" else ""
call = {{"node": node, "command": command, "strict": strict, "batch": ["-o", "BatchMode=yes"] in flags, "given": given}}
with here.joinpath("calls").open("a") as calls:
    calls.write(json.dumps(call) + chr(10))
answers = json.loads(here.joinpath("answers").read_text()).get(node, [])
count = sum(json.loads(line)["node"] == node for line in here.joinpath("calls").read_text().splitlines())
code, out, error = answers[min(count, len(answers)) - 1] if answers else (0, "", "")
sys.stderr.write(error)
if out.startswith("file:"):
    sys.stdout.buffer.write(pathlib.Path(out[5:]).read_bytes())
else:
    sys.stdout.write(out)
sys.exit(code)
"""


@pytest.fixture
def demo(tmp_path: Path) -> Deployment:
    """A deployment whose nodes are on record."""
    deployment = Deployment("demo", tmp_path / "demo", "aws", "up")
    deployment.save()
    site.write_inventory(deployment, OUTPUTS)
    return deployment


class Nodes:
    """What they answer, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer()
        (folder / "ssh").write_text(SSH.format(python=sys.executable, folder=str(folder)))
        (folder / "ssh").chmod(0o755)

    def answer(self, **answers: list[tuple[int, str, str]]) -> None:
        """For node demo_01: exit code, output and errors of its first call, its second, and so on."""
        by_name = {name.replace("_", "-"): each for name, each in answers.items()}
        (self.folder / "answers").write_text(json.dumps(by_name))
        (self.folder / "calls").write_text("")

    def calls(self) -> list[dict[str, Any]]:
        """In their order."""
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """A stand-in for ssh on PATH."""
    folder = tmp_path / "nodes"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Nodes(folder)


def resolved(deployment: Deployment, host: str) -> dict[str, str]:
    """What OpenSSH itself makes of the configuration."""
    said = subprocess.run(
        ["/usr/bin/ssh", "-G", "-F", str(deployment.directory / "ssh_config"), host],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.partition(" ")[::2] for line in said.stdout.splitlines())


@pytest.mark.skipif(not Path("/usr/bin/ssh").exists(), reason="OpenSSH's client is not on this machine")
def test_openssh_goes_the_deployment_s_way_and_takes_no_unknown_key(demo: Deployment) -> None:
    by_name, by_address = resolved(demo, "demo-01"), resolved(demo, "10.42.16.4")
    for each in ("hostname", "user", "proxyjump", "hostkeyalias", "stricthostkeychecking", "userknownhostsfile"):
        assert by_name[each] == by_address[each], each
    assert (by_name["hostname"], by_name["user"], by_name["port"]) == ("10.42.16.4", "ubuntu", "22")
    assert by_name["proxyjump"].replace("[", "").replace("]", "") == "ops@198.51.100.7"
    assert by_name["stricthostkeychecking"] == "true"
    assert by_name["userknownhostsfile"].split()[0] == str(demo.directory / "known_hosts")
    # A machine that takes another's place under the same name and address is another one.
    assert by_name["hostkeyalias"] == "i-1"
    ssm = resolved(demo, "demo-02")
    assert (ssm["hostname"], ssm["port"]) == ("i-2", "2222")
    # A machine whose key is given is believed with that key alone.
    ssh.write(demo, with_node("demo-02", host_key="ssh-rsa A", jump_host="none"))
    found = resolved(demo, "demo-02")
    assert (found["userknownhostsfile"], found["knownhostscommand"]) == ("/dev/null", "/bin/echo %H ssh-rsa A")
    assert "proxyjump" not in found
    ssh.write(demo, OUTPUTS)
    # The jump host's own key is checked by the same rules, as ssh hands -F on to it.
    assert resolved(demo, "198.51.100.7")["stricthostkeychecking"] == "true"


def test_what_connects_follows_from_what_the_outputs_name(demo: Deployment) -> None:
    text = ssh.config(demo, {**OUTPUTS, "cluster": {**OUTPUTS["cluster"], "jump_host": "", "connection": "ssm"}})
    session = "--document-name AWS-StartSSHSession --parameters portNumber=%p"
    assert f"  ProxyCommand aws ssm start-session --region us-east-1 --target %h {session}\n" in text
    # The machine that is the jump host of the others is reached without one.
    gate = with_node("demo-monitor", connect_to="203.0.113.5")
    text = ssh.config(demo, {**gate, "cluster": {**OUTPUTS["cluster"], "jump_host": "ubuntu@203.0.113.5"}})
    assert text.split("Host demo-monitor")[1].split("Host *")[0].count("ProxyJump none") == 1
    assert text.count("ProxyJump ubuntu@203.0.113.5") == 2
    with pytest.raises(
        DeployError, match=r"^Terraform's state says of demo-01 that its connect_to is 'a b', which cannot"
    ):
        ssh.config(demo, with_node("demo-01", connect_to="a b"))


def test_the_inventory_goes_the_same_way_and_runs_no_value(demo: Deployment) -> None:
    hosts = listed(demo.inventory)["_meta"]["hostvars"]
    config = f"-F {demo.directory / 'ssh_config'} -o ProxyJump=ops@198.51.100.7"
    assert {name: about["ansible_ssh_common_args"] for name, about in hosts.items()} == {
        f"demo-{name}": f"{config} -o HostKeyAlias=i-{number}" for number, name in enumerate(("01", "02", "monitor"), 1)
    }
    assert hosts["demo-02"]["ansible_host"] == "i-2"
    with pytest.raises(DeployError, match=r"^Terraform's state says of demo-01 that its zone is '\{\{ lookup"):
        site.write_inventory(demo, with_node("demo-01", zone="{{ lookup('ansible.builtin.pipe', 'touch marker') }}"))


def test_a_play_without_its_inventory_fails(demo: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Ansible does not find the collection, whose plugin reads it: nothing would be done, with success."""
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert site.run_module(demo, tmp_path, "ansible.builtin.ping", {}) != 0


def test_a_deployment_of_an_earlier_release_goes_on(demo: Deployment, nodes: Nodes) -> None:
    """Its keys were known under name and id, its inventory was a file, and its outputs had arguments of ssh as text."""
    known = demo.directory / "known_hosts"
    (demo.inventory / site.NAME).rename(demo.inventory / site.EARLIER)
    known.write_text("demo-01.i-1 ssh-ed25519 AAAA\n|1|hashed ssh-ed25519 BBBB\ndemo-02.10.0.0.2 ssh-ed25519 CCCC\n")
    made(demo)  # nothing is written where all is there
    assert [path.name for path in demo.inventory.iterdir()] == [site.EARLIER]
    about = {key: value for key, value in OUTPUTS["cluster"].items() if key not in ("jump_host", "connection")}
    earlier = {
        **with_node("demo-01", ssh_arguments=None),
        "cluster": {**about, "ssh_arguments": "-o ProxyJump=ops@gate"},
    }
    assert ssh.answering(demo, earlier) == [True, True, True]
    sentence = (
        r"^Terraform's state gives ssh_arguments, as an earlier release of the modules did, .*: bring the outputs up "
        r"to date with `gaudi3-deploy up`, which changes no machine\.$"
    )
    with pytest.raises(DeployError, match=sentence):
        ssh.wait(demo, earlier, lambda text: None, 60, pause=0)
    # Those of machines that were reached directly need no `up`.
    direct = {
        **with_node("demo-02", connect_to="10.0.0.2", instance_id=None),
        "cluster": {**about, "ssh_arguments": ""},
    }
    site.write_inventory(demo, direct)
    assert [path.name for path in demo.inventory.iterdir()] == [site.NAME]
    assert known.read_text() == ("i-1 ssh-ed25519 AAAA\n|1|hashed ssh-ed25519 BBBB\n[10.0.0.2]:2222 ssh-ed25519 CCCC\n")


def test_keys_are_learnt_once_and_asked_for_strictly_afterwards(demo: Deployment, nodes: Nodes) -> None:
    refused = (255, "", "ssh: connect to host 10.42.16.5 port 22: Connection refused\n")
    nodes.answer(demo_02=[refused, (0, "", ""), (0, "", "")])
    said: list[str] = []
    ssh.wait(demo, OUTPUTS, said.append, 60, pause=0)
    assert said == [
        "waiting for 3 machine(s) to let ssh in, for 1 minutes at most",
        "2 of 3 let ssh in; not yet demo-02",
        "3 of 3 let ssh in",
        "3 machine(s) have ended their first start",
    ]
    calls = nodes.calls()
    assert all(call["batch"] for call in calls)
    assert {call["strict"] for call in calls if call["command"] == "true"} == {"accept-new"}
    first_boots = [call for call in calls if "cloud-init status --wait" in call["command"]]
    assert sorted(call["node"] for call in first_boots) == ["demo-01", "demo-02", "demo-monitor"]
    assert {call["strict"] for call in first_boots} == {"yes"}
    assert [path.name for path in demo.directory.iterdir() if "tmp" in path.name] == []


def test_what_does_not_answer_and_what_answers_as_another_is_named(demo: Deployment, nodes: Nodes) -> None:
    nodes.answer(demo_01=[(255, "", "Connection timed out\n")])
    with pytest.raises(
        DeployError, match=r"^1 of 3 machines do not let ssh in after 0 minutes \(demo-01: Connection tim"
    ):
        ssh.wait(demo, OUTPUTS, lambda text: None, 0, pause=0)
    nodes.answer(demo_02=[(255, "", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n")])
    with pytest.raises(DeployError, match=r"^demo-02 has another host key than the one in .*known_hosts"):
        ssh.wait(demo, OUTPUTS, lambda text: None, 60, pause=0)
    nodes.answer(demo_02=[(0, "", ""), (1, "status: error\ndetail: no disk\n", "")])
    with pytest.raises(
        DeployError, match=r"^The first start of demo-02 did not end well \(status: error detail: no disk\)"
    ):
        ssh.wait(demo, OUTPUTS, lambda text: None, 60, pause=0)


def test_status_asks_by_the_way_that_ansible_takes(demo: Deployment, nodes: Nodes) -> None:
    nodes.answer(demo_monitor=[(255, "", "")])
    assert ssh.answering(demo, OUTPUTS) == [True, True, False]
    assert {call["strict"] for call in nodes.calls()} == {"yes"}


def test_ssh_and_logs_go_to_the_node_that_is_meant(demo: Deployment, nodes: Nodes, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gaudi3_deploy", "--deployments", str(tmp_path), *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(ssh.__file__).parents[1])},
        )  # fmt: skip

    assert run("ssh", "demo").returncode == 0
    assert run("ssh", "demo", "demo-02", "--", "uptime").returncode == 0
    assert run("ssh", "demo", "--", "uptime", "-p").returncode == 0
    assert run("logs", "demo", "job", "-f", "--lines", "5").returncode == 0
    calls = [(call["node"], call["command"]) for call in nodes.calls()]
    assert calls[:3] == [("demo-01", ""), ("demo-02", "uptime"), ("demo-01", "uptime -p")]
    assert calls[3][0] == "demo-01"
    assert calls[3][1].endswith("$sudo journalctl --no-pager -u gaudi-train-job.service -n 5 -f")
    wrong = run("ssh", "demo", "demo-03")
    assert wrong.returncode == 2
    assert (
        "Deployment 'demo' has no node 'demo-03' (there is: demo-01, demo-02, demo-monitor): name one" in wrong.stderr
    )
    assert "has a name that no job has" in run("logs", "demo", "a;b").stderr
    (demo.logs).mkdir()
    (demo.logs / "1-plan.log").write_text("one\ntwo\n")
    assert run("logs", "demo", "--lines", "1").stdout.splitlines()[-1] == "two"


def test_logs_of_all_nodes_are_those_of_the_monitoring_machine(demo: Deployment, nodes: Nodes, tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "gaudi3_deploy", "--deployments", str(tmp_path), "logs", "demo", *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(ssh.__file__).parents[1])},
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    nodes.answer(demo_monitor=[(1, "one\x1b[2J\n\ntwo\n", "gaudi-logs: the logs of demo-02 cannot be read\n")])
    done = run("llm", "--rank", "37", "--since", "10m", "--kernel", code=1)
    assert done.stdout.splitlines() == ["one\\x1b[2J", "two"]
    assert done.stderr == "gaudi-logs: the logs of demo-02 cannot be read\n"
    (call,) = nodes.calls()
    assert (call["node"], call["batch"]) == ("demo-monitor", True)
    reader = "/usr/local/bin/gaudi-logs --job=llm --rank=37 --since=600s --lines=100 --kernel"
    assert call["command"].endswith(f"$sudo {reader}")
    nodes.answer(demo_monitor=[(0, "", "")])
    run("a;b", "--all", "--node", "demo-02; reboot")
    (call,) = nodes.calls()
    assert call["command"].endswith("$sudo /usr/local/bin/gaudi-logs '--job=a;b' '--node=demo-02; reboot' --lines=100")


@pytest.mark.parametrize(
    ("answer", "arguments", "said"),
    [
        ((127, "", ""), ["--all"], "demo-monitor collects no logs: run `ansible-playbook -i $(gaudi3-deploy inventory"),
        ((2, "", "gaudi-logs: No \x1bnode.\n"), ["--all"], "gaudi3-deploy: No \\x1bnode."),
        ((255, "", "Connection refused"), ["--all"], "demo-monitor does not show its logs (Connection refused)."),
        ((0, "", ""), ["--since", "soon"], "The time 'soon' is not understood"),
        ((0, "", ""), ["--all", "-f"], "What has been collected is shown once: leave --follow out"),
    ],
)
def test_logs_that_cannot_be_shown(
    answer: tuple[int, str, str],
    arguments: list[str],
    said: str,
    demo: Deployment,
    nodes: Nodes,
    tmp_path: Path,
) -> None:
    nodes.answer(demo_monitor=[answer])
    done = subprocess.run(
        [sys.executable, "-m", "gaudi3_deploy", "--deployments", str(tmp_path), "logs", "demo", "llm", *arguments],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(ssh.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode in (1, 2) and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_logs_of_a_cluster_without_a_monitoring_machine(demo: Deployment) -> None:
    machines = OUTPUTS["cluster_endpoints"]
    alone = {**OUTPUTS, "cluster_endpoints": {name: machines[name] for name in ("demo-01", "demo-02")}}
    with pytest.raises(UsageError, match="'demo' has no monitoring machine that could collect logs: ask one node, as"):
        collected.show(demo, alone, collected.Question("llm"), print, print)


def test_jobs_save_on_all_nodes_at_once_and_one_that_does_not_is_named(demo: Deployment, nodes: Nodes) -> None:
    nodes.answer(demo_01=[(0, "gaudi-train-b.service gaudi-train-a.service\n", "")])
    said: list[str] = []
    assert jobs.drain(demo, said.append) == ["a", "b"]
    assert said == ["saved and ended: a, b"]
    asked = nodes.calls()
    assert sorted(call["node"] for call in asked) == ["demo-01", "demo-02"]
    assert all("systemctl stop" in call["given"] for call in asked)
    nodes.answer(demo_02=[(1, "", "sudo: a password is required\n")])
    with pytest.raises(DeployError, match=r"^The jobs on demo-02 were not stopped \(sudo: a password is required\)"):
        jobs.drain(demo, said.append)


def test_stop_has_the_job_save_and_stay_stopped_on_all_nodes(demo: Deployment, nodes: Nodes, tmp_path: Path) -> None:
    note = tmp_path / "nodes/ansible-calls"
    stand_in = tmp_path / "nodes/ansible"

    def run(*arguments: str, code: int = 0, ansible: int = 0) -> subprocess.CompletedProcess[str]:
        stand_in.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >>{note}\necho said by ansible\nexit {ansible}\n")
        stand_in.chmod(0o755)
        note.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "gaudi3_deploy", "--deployments", str(tmp_path), "stop", "demo", *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(ssh.__file__).parents[1]), "COLUMNS": "300", "NO_COLOR": "1"},
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    def called(*names: str) -> list[str]:
        jobs_dir = "{{ trainer_jobs_dir | default('/var/lib/gaudi3-scale/jobs') }}"
        begun = ["-i", str(demo.inventory), "gaudi", "--forks", "64", "-m", "gaudi3.scale.gaudi_train", "-a"]
        given = [json.dumps({"name": each, "state": "stopped", "jobs_dir": jobs_dir}) for each in names]
        return [each for argument in given for each in (*begun, argument)]

    assert json.loads(run("--json").stdout) == {"schema": 1, "deployment": "demo", "stopped": []}
    assert not note.exists()
    nodes.answer(demo_01=[(0, "gaudi-train-b.service gaudi-train-a.service\n", "")])
    done = run("b", "--json")
    assert json.loads(done.stdout) == {"schema": 1, "deployment": "demo", "stopped": ["b"]}
    assert "said by ansible" in done.stderr
    assert note.read_text().splitlines() == called("b")
    # The nodes are only asked what runs: it is the module that stops a job, and remembers it.
    assert {call["node"] for call in nodes.calls()} == {"demo-01", "demo-02"}
    assert not any("systemctl stop" in call["given"] for call in nodes.calls())
    assert (
        run()
        .stdout.splitlines()[-1]
        .endswith("stopped: a, b; to go on, run `gaudi3-deploy site demo -e trainer_resume_stopped=true`")
    )
    assert note.read_text().splitlines() == called("a", "b")
    assert run("c", code=2).stderr.splitlines()[-1] == (
        "gaudi3-deploy: Job 'c' does not run in deployment 'demo' (there is: a, b): name one."
    )
    assert not note.exists()
    assert run("a", code=1, ansible=4).stderr.splitlines()[-1] == (
        "gaudi3-deploy: Job a was not stopped on every node (exit code 4): run the same again."
    )


def test_every_machine_gets_an_end_of_its_own(demo: Deployment, nodes: Nodes) -> None:
    said: list[str] = []
    watchdog_timer.install(demo, 1_700_000_000.0, said.append)
    assert said == ["3 machine(s) power off at 2023-11-14 22:23 UTC by themselves"]
    (text,) = {call["given"] for call in nodes.calls()}
    assert "OnCalendar=2023-11-14 22:23:20 UTC\n" in text
    assert "ExecStart=/usr/bin/systemctl poweroff\n" in text and "Persistent=true\n" in text
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    nodes.answer(demo_02=[(1, "", "sudo: a password is required\n")])
    with pytest.raises(DeployError, match=r"^demo-02 did not take the timer that ends it \(sudo: a password"):
        watchdog_timer.install(demo, 1_700_000_000.0, said.append)


def test_results_come_whole_or_not_at_all(demo: Deployment, nodes: Nodes, tmp_path: Path) -> None:
    job = tmp_path / "there/demo"
    job.mkdir(parents=True)
    (job / "status.json").write_text("{}")
    subprocess.run(["tar", "-C", job.parent, "-cf", tmp_path / "job.tar", "demo"], check=True)
    nodes.answer(demo_01=[(0, f"file:{tmp_path / 'job.tar'}", "")])
    said: list[str] = []
    target = tmp_path / "results"
    (target / "demo").mkdir(parents=True)
    (target / "demo/older").write_text("")
    assert results.fetch(demo, "demo-01", "demo", target, said.append) == target / "demo"
    assert [path.name for path in (target / "demo").iterdir()] == ["status.json"]
    nodes.answer(demo_01=[(2, "", "tar: demo: Cannot stat: No such file or directory\n")])
    with pytest.raises(
        DeployError, match=r"^What job demo has written on demo-01 was not brought here \(tar: demo: Cann"
    ):
        results.fetch(demo, "demo-01", "demo", target, said.append)
    assert [path.name for path in target.rglob("*")] == ["demo", "status.json"]
