"""What the role serving leaves on a node, and what clients see while it replaces what is served."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://gaudi"]

SCENARIO = Path(__file__).resolve().parents[1]
FOLDER, ROOT = "/etc/gaudi3-scale/serving", "/var/lib/gaudi3-serving"
REPLICAS = ("gaudi3-serving-1", "gaudi3-serving-2")
BALANCER = "gaudi3-serving-balancer"
#: Twenty clients with a stream of about two seconds each; one line of each: whether it is whole.
CLIENTS = """
import json, ssl, sys, http.client
from concurrent.futures import ThreadPoolExecutor

def stream(number):
    context = ssl.create_default_context(cafile="/etc/gaudi3-scale/serving/ca.crt")
    asking = http.client.HTTPSConnection(sys.argv[1], 8443, timeout=60, context=context)
    asked = {"model": "llm", "prompt": "a", "max_tokens": 100, "stream": True}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + KEY}
    asking.request("POST", "/v1/completions", json.dumps(asked), headers)
    lines = [line.decode().strip() for line in asking.getresponse()]
    pieces = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    reasons = [choice["finish_reason"] for piece in pieces for choice in piece["choices"] if choice["finish_reason"]]
    return reasons == ["length"] and lines[-2] == "data: [DONE]"

KEY = sys.stdin.readline().strip()
print("asking", flush=True)
with ThreadPoolExecutor(20) as pool:
    print(sum(pool.map(stream, range(20))))
"""


@pytest.fixture
def address(host: Any) -> str:
    return str(host.ansible.get_variables()["ansible_host"])


@pytest.fixture
def key(host: Any) -> str:
    folder = Path(host.ansible.get_variables()["gaudi_secrets_dir"])
    return (folder / "serving_password").read_text(encoding="utf-8").strip()


def play(name: str, *arguments: str, fails: bool = False) -> str:
    """A further run, as its user starts it; what it printed."""
    inventory = SCENARIO.parents[2] / "inventories/simulated"
    done = subprocess.run(
        ["ansible-playbook", "-i", str(inventory), str(SCENARIO / name), *arguments],
        cwd=SCENARIO.parents[2],
        env={**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def length(host: Any, address: str, key: str) -> int:
    """Of the sequences of the model that answers: each of the three has another."""
    given = f"echo 'header = \"Authorization: Bearer {key}\"'"
    said = host.run(f"{given} | curl -sS --cacert {FOLDER}/ca.crt --config - https://{address}:8443/v1/models")
    return int(json.loads(said.stdout)["data"][0]["max_model_len"])


def processes(host: Any, unit: str) -> list[str]:
    """Of a replica: the role's program, the server, its Worker."""
    found = [host.check_output(f"systemctl show {unit} --property MainPID --value")]
    for _each in range(2):
        found.append(host.check_output(f"pgrep -P {found[-1]}"))
    return found


def ready_again(host: Any, unit: str, restarts: int) -> None:
    """Until systemd has started it again by itself, so many times."""
    counted = f'[ "$(systemctl show {unit} --property NRestarts --value)" = {restarts} ]'
    said = host.run(f"timeout 60 sh -c 'until {counted} && systemctl is-active --quiet {unit}; do sleep 0.3; done'")
    assert said.rc == 0, host.run(f"systemctl status {unit}").stdout


def test_all_of_it_runs_now_and_at_boot_and_was_started_once(host: Any) -> None:
    for unit in (*REPLICAS, BALANCER):
        assert host.service(unit).is_running and host.service(unit).is_enabled
        assert host.service(unit).systemd_properties["NRestarts"] == "0"
        # Converged twice: the second run starts nothing.
        assert host.run(f"journalctl --unit {unit} --output cat").stdout.count("Started ") == 1
    assert "ready, with " in host.run(f"systemctl status {REPLICAS[0]}").stdout


def test_engines_listen_on_the_host_alone_and_the_balancer_on_its_address(host: Any, address: str) -> None:
    lines = host.check_output("ss --no-header --listening --tcp --numeric").splitlines()
    found = {line.split()[3] for line in lines}
    wanted = {"127.0.0.1:18801", "127.0.0.1:18802", f"{address}:8443", f"{address}:9420"}
    assert wanted <= found
    assert not {each for each in found - wanted if each.rpartition(":")[2] in ("18801", "18802", "8443", "9420")}


def test_engines_are_no_roots_and_may_write_one_folder(host: Any) -> None:
    for number, unit in enumerate(REPLICAS, 1):
        names = host.check_output(f"ps -o user:20= -p {','.join(processes(host, unit))}").split()
        assert names == ["gaudi-serving"] * 3
        state = host.file(f"{ROOT}/replica-{number}")
        assert (state.user, state.group, state.mode) == ("gaudi-serving", "gaudi-serving", 0o750)
    (release,) = host.check_output(f"ls {ROOT}/releases").split()
    weights = host.file(f"{ROOT}/releases/{release}/model/model.safetensors")
    assert (weights.user, weights.group, weights.mode) == ("root", "gaudi-serving", 0o640)


def test_the_key_is_in_no_file_log_or_process_of_the_node(host: Any, key: str) -> None:
    assert len(key) > 20
    # The tests themselves leave it in the journal: this is the first that knows it.
    assert key not in host.check_output("journalctl --output cat")
    assert host.run(f"grep -rlF -D skip {key} /etc /var/lib /usr/local /run/gaudi3-serving-balancer /tmp").stdout == ""
    # Read before it is compared: a grep would find its own command.
    assert key not in host.check_output("ps -eww -o args=")
    keys, private = host.file(f"{FOLDER}/keys"), host.file(f"{FOLDER}/server.key")
    assert (
        (keys.user, keys.group, keys.mode) == (private.user, private.group, private.mode) == ("root", "haproxy", 0o640)
    )


def test_the_key_opens_and_nothing_else_does(host: Any, address: str, key: str) -> None:
    code = f"curl -s -o /dev/null -w '%{{http_code}}' --cacert {FOLDER}/ca.crt"
    url = f"https://{address}:8443"
    assert host.run(f"{code} {url}/health").stdout == "200"
    assert host.run(f"{code} {url}/v1/models").stdout == "401"
    assert host.run(f"{code} -H 'Authorization: Bearer wrong' {url}/v1/models").stdout == "401"
    assert length(host, address, key) == 4096
    assert host.run(f"curl -s http://{address}:9420/replica-2/metrics").stdout.count("vllm:num_requests_running{") == 1


def test_what_dies_is_started_again_by_systemd_and_nothing_of_it_is_left(host: Any, address: str, key: str) -> None:
    # A Worker, whose server then ends with exit code 0.
    before = processes(host, REPLICAS[0])
    host.check_output(f"kill -9 {before[2]}")
    ready_again(host, REPLICAS[0], 1)
    assert not {*before} & {*processes(host, REPLICAS[0])}
    # The program itself: what it has started is systemd's to end.
    before = processes(host, REPLICAS[1])
    host.check_output(f"kill -9 {before[0]}")
    assert length(host, address, key) == 4096
    ready_again(host, REPLICAS[1], 1)
    assert host.run(f"ps -p {','.join(before)} -o pid=").stdout == ""
    host.check_output(f"kill -9 $(systemctl show --property MainPID --value {BALANCER})")
    ready_again(host, BALANCER, 1)
    assert length(host, address, key) == 4096


def test_a_new_version_comes_under_streams_and_the_one_before_comes_back(host: Any, address: str, key: str) -> None:
    host.run(f"cat > /run/clients.py <<'END'\n{CLIENTS}\nEND")
    predicted = play("converge.yml", "-e", "serving_model=/srv/models/short", "--check", "--diff")
    assert "+model: /srv/models/short" in predicted and length(host, address, key) == 4096
    host.run(f"(echo {key} | python3 /run/clients.py {address} > /run/clients 2>&1) > /dev/null 2>&1 &")
    assert host.run("timeout 20 sh -c 'until grep -q asking /run/clients; do sleep 0.1; done'").rc == 0
    said = host.run(f"systemctl restart {REPLICAS[0]} {REPLICAS[1]}")
    assert said.rc == 0 and length(host, address, key) == 4096
    assert host.run("timeout 30 sh -c 'until grep -qx 20 /run/clients; do sleep 0.2; done'").rc == 0, host.run(
        "cat /run/clients"
    ).stdout
    said = play("converge.yml", "-e", "serving_model=/srv/models/short")
    assert "llm is served by 2 replicas with " in said and length(host, address, key) == 512
    refused = play("converge.yml", "-e", "serving_model=/srv/models/none", fails=True)
    assert "The model's folder /srv/models/none is not there" in refused and length(host, address, key) == 512
    broken = {"serving_model": "/srv/models/long", "serving_environment": {"STAND_IN_FAILS": "1"}}
    failed = play("converge.yml", "-e", json.dumps(broken), fails=True)
    assert "ValueError: the test wants it to fail" in failed and "is served as before" in failed
    assert length(host, address, key) == 512
    said = play("converge.yml", "-e", "serving_rollback=true")
    assert "llm is served by 2 replicas with " in said and length(host, address, key) == 4096


def test_it_is_removed_as_a_whole(host: Any, address: str) -> None:
    play("remove.yml")
    for unit in (*REPLICAS, BALANCER):
        assert not host.service(unit).is_running
    left = host.run(f"ls -d {FOLDER} {ROOT} /usr/local/lib/gaudi3-serving /etc/systemd/system/gaudi3-serving*").stdout
    assert left == ""
    assert "gaudi-serving" not in host.check_output("ps -e -o user:20=")
    assert "changed=0" in play("remove.yml")
