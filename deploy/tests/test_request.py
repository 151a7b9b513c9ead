"""A bad request is refused in one sentence, with exit code 2, before Terraform starts and anything is written."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from gaudi3_deploy import cli, declared, request
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.record import Deployment

TREE = Path(__file__).resolve().parents[2] / "terraform"
CLOUDS = ("aws", "azure", "gcp", "ibm", "onprem")
#: What passes on each cloud; a type of one's own where the cloud has no Gaudi.
OWN = {"own8": {"cloud": "", "accelerator": "Gaudi 3", "cards": 8, "source": "me", "gaudi_generation": 3}}
TYPES = {"ibm": "gx3d-160x1792x8gaudi3", "onprem": "onprem-gaudi3-8"}
HOSTS = [{"name": "one", "address": "10.0.0.1"}, {"name": "two", "address": "10.0.0.2", "port": 2222}]


def good(cloud: str) -> dict[str, Any]:
    """Variables that nothing is wrong with."""
    given: dict[str, Any] = {"name": "demo", "cluster_size": 16, "instance_type": TYPES.get(cloud, "own8")}
    if cloud not in TYPES:
        given["extra_instance_types"] = {"own8": {**OWN["own8"], "cloud": cloud}}
    return {**given, **({"hosts": HOSTS} if cloud == "onprem" else {})}


def refused(cloud: str, changes: dict[str, Any], *named: str, offered: bool = True, **environment: str) -> str:
    """The sentence of a refusal; empty where there is none."""
    variables = {key: value for key, value in {**good(cloud), **changes}.items() if value is not None}
    deployment = Deployment("demo", Path("demo"), cloud, variables=variables, environment=environment)
    try:
        request.refuse(deployment, TREE, named, offered)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_good_request_passes_on_every_cloud(cloud: str) -> None:
    assert refused(cloud, {}, "cluster_size", "tags") == ""
    assert refused(cloud, {"cluster_size": "16", "tags": {"team": 1}, "teardown": "false"}) == ""
    as_environment = {"TF_VAR_cluster_size": "16", "TF_VAR_instance_type": good(cloud)["instance_type"]}
    assert refused(cloud, {"cluster_size": None, "instance_type": None}, **as_environment) == ""


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster_size": 7}, ("cluster_size is 7, but a ", " has 8 cards: give a multiple of 8, such as 8.")),
        ({"cluster_size": 0}, ("cluster_size is 0, but counts accelerator cards: give a whole number from 1 on.",)),
        ({"cluster_size": -8}, ("cluster_size is -8, but counts accelerator cards",)),
        ({"cluster_size": 8.5}, ("cluster_size is 8.5, but counts accelerator cards",)),
        ({"cluster_size": "many"}, ("cluster_size is 'many': give a number.",)),
        ({"cluster_size": None}, ("cluster_size is not given, and ", " needs it: give it with --size.")),
        ({"instance_type": None}, ("instance_type is not given, and ", " needs it: give it with --type.")),
        ({"instance_type": "gaudi"}, ("instance_type is 'gaudi', which the catalogue does not have: ",)),
        ({"instance_type": "dl2q.24xlarge"}, ("dl2q.24xlarge has Qualcomm AI 100 inference cards and no Gaudi",)),
        ({"allowed_cidrs": "10.0.0.0/8"}, ("allowed_cidrs is '10.0.0.0/8': give a list, such as ['a', 'b'].",)),
        ({"allowed_cidrs": [["10.0.0.0/8"]]}, ('allowed_cidrs[0] is ["10.0.0.0/8"]: give text.',)),
        ({"tags": ["a"]}, ('tags is ["a"]: give a mapping.',)),
        ({"teardown": "maybe"}, ("teardown is 'maybe': give true or false.",)),
        (
            {"extra_instance_types": {"x": {"cloud": "aws", "acelerator": "Gaudi", "cards": 8, "source": "me"}}},
            ("extra_instance_types.x has the key 'acelerator', which is not known: did you mean 'accelerator'?",),
        ),
        (
            {"extra_instance_types": {"x": {"cloud": "aws", "cards": 8, "source": "me"}}},
            ("extra_instance_types.x lacks accelerator: give it.",),
        ),
    ],
)
def test_a_bad_request_is_refused_on_every_cloud(cloud: str, changes: dict[str, Any], words: tuple[str, ...]) -> None:
    said = refused(cloud, changes)
    assert said.startswith(words[0])
    assert all(each in said for each in words)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_misspelt_variable_is_refused_with_what_was_meant(cloud: str) -> None:
    for name in declared.names(TREE / cloud):
        wrong = f"{name[:3]}x{name[4:]}"
        assert refused(cloud, {}, wrong).startswith(f"The variable {wrong!r} is not one of {cloud}: did you mean "), (
            name
        )
    assert "the names are " in refused(cloud, {}, "qqqqqq")
    assert refused(cloud, {"of_an_older_version": 1}) == ""  # on record, and not given now


@pytest.mark.parametrize(
    ("cloud", "changes", "sentence"),
    [
        ("ibm", {"instance_type": "gx3d-160x1792x8gaudi"}, "does not have: did you mean 'gx3d-160x1792x8gaudi3'?"),
        ("aws", {"instance_type": TYPES["ibm"]}, "is a type of ibm, not of aws: use own8."),
        ("aws", {"instance_type": "p5.48xlarge"}, "no Gaudi but NVIDIA H100: set accept_other_accelerators=true"),
        ("aws", {"instance_type": "dl1.24xlarge"}, "has not offered since 2026-07-11: use own8, or set"),
        (
            "aws",
            {"instance_type": "dl1.24xlarge", "accept_withdrawn_type": True, "region": "eu-west-1"},
            "region is 'eu-west-1', where dl1.24xlarge is not known to be offered: use us-east-1, us-west-2, or add",
        ),
        ("aws", {"extra_instance_types": None, "instance_type": "x"}, "use --cloud ibm, as aws is not known to offer"),
    ],
)
def test_a_type_that_is_not_offered_is_refused(cloud: str, changes: dict[str, Any], sentence: str) -> None:
    assert sentence in refused(cloud, changes)


def test_what_is_accepted_passes_and_check_lists_it_itself() -> None:
    withdrawn = {"instance_type": "dl1.24xlarge"}
    assert refused("aws", {**withdrawn, "accept_withdrawn_type": True}) == ""
    assert refused("aws", withdrawn, TF_VAR_accept_withdrawn_type="true") == ""
    assert refused("aws", withdrawn, offered=False) == ""
    assert refused("aws", {"instance_type": "p5.48xlarge", "accept_other_accelerators": True}) == ""


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        (
            [{"name": "one", "adress": "10.0.0.1"}],
            "hosts[0] has the key 'adress', which is not known: did you mean 'address'?",
        ),
        ([{"name": "one"}], "hosts[0] lacks address: give it."),
        ([{}], "hosts[0] lacks name, address: give them."),
        ([HOSTS[0], {**HOSTS[1], "prot": 22}], "hosts[1] has the key 'prot', which is not known: did you mean 'port'?"),
        (
            [{'name="one"': None, 'address="10.0.0.1"': None}],
            """hosts[0] has 'name="one"', as Terraform writes it: write it as YAML does, name: "one".""",
        ),
        ([HOSTS[0], {**HOSTS[1], "port": "ssh"}], "hosts[1].port is 'ssh': give a number."),
        (
            [HOSTS[0], {**HOSTS[1], "port": 70000}],
            "port of machine 'two' is 70000: give a number from 1 to 65535.",
        ),
        ([HOSTS[0], {**HOSTS[1], "address": "10.0.0.2/24"}], "address of machine 'two' is '10.0.0.2/24': give an"),
        ([HOSTS[0], HOSTS[0]], "hosts has one more than once: give each machine a name of its own."),
        (
            [HOSTS[0]],
            "hosts has 1 machines, but cluster_size = 16 needs 2 of type onprem-gaudi3-8: add machines or ask for "
            "fewer cards.",
        ),
        ({"one": "10.0.0.1"}, 'hosts is {"one": "10.0.0.1"}: give a list'),
        (["10.0.0.1"], "hosts[0] is '10.0.0.1': give a mapping with the keys name, address, cluster_address"),
    ],
)
def test_machines_of_ones_own_are_looked_at_before(hosts: Any, sentence: str) -> None:
    assert refused("onprem", {"hosts": hosts}).startswith(sentence)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "m.yml",
            "hosts:\n- {name: one, adress: 10.0.0.1}\n",
            "has the key 'adress', which is not known: did you mean",
        ),
        (
            "m.csv",
            "name,address,prot\none,10.0.0.1,22\n",
            "has the key 'prot', which is not known: did you mean 'port'?",
        ),
        ("m.yml", "- {name: one}\n", " lacks address: give it."),
        ("m.yml", "- one\n", "which has no list of machines: give the absolute path"),
        ("m.yml", "a: [\n", "which cannot be read (while parsing"),
        ("m.yml", "hosts: []\nhosts: []\n", "('hosts' stands twice, in lines 1 and 2: keep one of them)"),
        ("m.yml", None, "which cannot be read (no such file or directory): give the absolute path"),
        ("m.yml", "- {name: one, address: a}\n", "hosts has 1 machines, but cluster_size = 16 needs 2"),
        ("m.yml", json.dumps([{**each, "role": "monitor"} for each in HOSTS]), "give one monitoring machine"),
    ],
)
def test_a_file_of_machines_is_looked_at_before(tmp_path: Path, name: str, text: str | None, sentence: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    assert sentence in refused("onprem", {"hosts": None, "hosts_file": str(path)})
    path.write_text(json.dumps(HOSTS))
    if path.suffix == ".yml":
        assert refused("onprem", {"hosts": None, "hosts_file": str(path)}) == ""


def test_what_is_said_in_terraforms_own_language_is_left_to_terraform(tmp_path: Path) -> None:
    own = {"instance_type": "own8", "extra_instance_types": None}
    assert "does not have" in refused("aws", own)
    assert refused("aws", own, TF_VAR_extra_instance_types="{ own8 = {} }") == ""
    assert refused("onprem", {"hosts": None}, TF_VAR_hosts="[]") == ""
    for cloud in CLOUDS:
        shutil.copytree(TREE / cloud, tmp_path / cloud, ignore=shutil.ignore_patterns(".terraform*"))
    shutil.copytree(TREE / "catalogue", tmp_path / "catalogue")
    deployment = Deployment("demo", Path("demo"), "ibm", variables={"name": "demo"})
    with pytest.raises(UsageError, match="cluster_size is not given"):
        request.refuse(deployment, tmp_path)
    for name, text in (
        ("terraform.tfvars", 'cluster_size = 8\ninstance_type="x"\n'),
        ("a.auto.tfvars.json", '{"cluster_size": 8,\n "instance_type": "x"}'),
    ):
        path = tmp_path / "ibm" / name
        path.write_text(text)
        request.refuse(deployment, tmp_path)
        path.unlink()


def test_the_rules_of_a_machine_are_found_where_terraform_has_them() -> None:
    found = dict(request.PATTERN.findall((TREE / "modules/onprem/main.tf").read_text()))
    machine = declared.variables(TREE / "onprem")["hosts"].type.of
    assert machine is not None
    assert set(found) == set(machine.keys)
    assert set(request.FIELDS) < set(found)


def test_every_type_that_is_declared_is_understood() -> None:
    roots = {cloud: declared.variables(TREE / cloud) for cloud in CLOUDS}
    for cloud, variables in roots.items():
        text = "".join(path.read_text() for path in (TREE / cloud).glob("*.tf"))
        assert len(variables) == text.count('\nvariable "') + text.startswith('variable "'), cloud
        assert [name for name, one in variables.items() if one.type.kind == "any"] == [], cloud
    assert roots["onprem"]["hosts"].type.of == roots["onprem"]["monitor_host"].type


#: (words of the command line, words of the sentence)
COMMANDS = (
    (
        "plan demo --cloud onprem --size 7 --type onprem-gaudi3-8",
        "cluster_size is 7, but a onprem-gaudi3-8 has 8 cards",
    ),
    ("up demo --cloud onprem --size 8 --type onprem-gaudi --yes", "did you mean 'onprem-gaudi"),
    ("up demo --cloud ibm --size 8 --yes", "instance_type is not given, and ibm needs it: give it with --type."),
    ("check demo --cloud aws --size x --type a", "Invalid value for '--size'"),
    ("check demo --cloud ibm --size 9 --type gx3d-160x1792x8gaudi3", "cluster_size is 9, but a gx3d-160x1792x8gaudi3"),
    ("up demo --cloud oracle", "The cloud 'oracle' is none of aws, azure, gcp, ibm, onprem"),
    ("up Demo --cloud aws", "The name 'Demo' can't be used"),
    ("up demo --cloud ibm --var regin=us-east", "The variable 'regin' is not one of ibm: did you mean 'region'?"),
    ("up demo --cloud ibm --var-file none.yml", "The variables in none.yml cannot be read (no such file or directory)"),
    ("up demo --cloud ibm --var-file bytes.yml", "The variables in bytes.yml cannot be read ("),
    ("up demo --cloud ibm --ssh-key none.pub", "The public key of none.pub cannot be read (no such file or directory)"),
    ("up demo --cloud ibm --price -3", "Invalid value for '--price'"),
    ("run nojob.yml --on ibm", "The job nojob.yml cannot be read (no such file or directory): give a YAML file"),
    ("run bytes.yml --on ibm", "The job bytes.yml cannot be read ("),
    (
        "run twice.yml --on ibm",
        "The job twice.yml cannot be read ('a' stands twice, in lines 1 and 2: keep one of them)",
    ),
    (
        "up demo --cloud ibm --var-file twice.yml",
        "The variables in twice.yml cannot be read ('a' stands twice, in lines",
    ),
    ("run odd.yml --on ibm", "The job odd.yml has no name"),
    ("run job.yml --on ibm --size 7 --type gx3d-160x1792x8gaudi3", "cluster_size is 7, but a gx3d-160x1792x8gaudi3"),
    ("run job.yml --on hosts --size 8 --type onprem-gaudi3-8", "hosts has 0 machines, but cluster_size = 8 needs 1"),
    ("run job.yml --on ibm --ttl soon", "The time 'soon' is not understood"),
    ("run job.yml --on ibm --max-usd -1", "Invalid value for '--max-usd'"),
    ("ssh demo", "There is no deployment 'demo'"),
    ("wait demo --minutes -1", "Invalid value for '--minutes'"),
    ("logs demo --lines -1", "Invalid value for '--lines'"),
    ("--terraform-dir none plan demo --cloud ibm", "There are no Terraform files in "),
    ("offer", "No such command 'offer'"),
)


@pytest.mark.parametrize(("line", "sentence"), COMMANDS, ids=[line for line, _sentence in COMMANDS])
def test_every_bad_request_ends_with_2_and_writes_nothing(
    line: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terraform = tmp_path / "bin" / "terraform"
    terraform.parent.mkdir()
    terraform.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    terraform.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(terraform.parent))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GAUDI3_DEPLOYMENTS", str(tmp_path / "deployments"))
    monkeypatch.delenv("GAUDI3_TERRAFORM_DIR", raising=False)
    Path("bytes.yml").write_bytes(b"\xff\xfe\x00")
    Path("twice.yml").write_text("a: 1\na: 2\n")
    Path("odd.yml").write_text("trainer_jobs: 5\n")
    Path("job.yml").write_text("trainer_job_name: one\n")
    before = sorted(tmp_path.rglob("*"))
    where = [] if line.startswith("--terraform-dir") else ["--terraform-dir", str(TREE)]
    monkeypatch.setattr(sys, "argv", ["gaudi3-deploy", *where, *line.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 2, said
    assert said.startswith("gaudi3-deploy: ") and sentence in said
    assert said.count("\n") == 1 and "Errno" not in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wait", "demo", "--timeout", "-1"], "No such option: --timeout: see `gaudi3-deploy wait --help`."),
        (["up"], "Missing argument 'name': see `gaudi3-deploy up --help`."),
        (["offers", "mars"], "Got unexpected extra argument(s) (mars): see `gaudi3-deploy offers --help`."),
    ],
)
def test_a_call_that_is_none_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["gaudi3-deploy", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (2, f"gaudi3-deploy: {said}\n")
