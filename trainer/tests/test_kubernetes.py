"""Manifests of a job: each passes the schema of its kind and Kubeflow's own models, and they belong together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubeflow_trainer_api import models
from kubernetes_faults import ONE_KIND, TOGETHER, container, job_template, planted, pod, strife, variables
from kubernetes_jobs import JOB, LEAST, MORE, MORE_JOB, SCRIPT, Document, documents, every_form, made, one
from kubernetes_schemas import problem
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job_file_text import as_text
from gaudi3_scale.kubernetes import manifest_files
from gaudi3_scale.kubernetes.checks import longest_name
from gaudi3_scale.kubernetes.cluster import ASKED, NOT_CARRIED, ClusterOptions
from gaudi3_scale.kubernetes.cluster_file import read_options, template
from gaudi3_scale.kubernetes.manifests import manifests

FORMS = dict(every_form())
MODELS = {
    "TrainJob": models.TrainerV1alpha1TrainJob,
    "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
    "JobSet": models.JobsetV1alpha2JobSet,
}
MONITORED = {**LEAST, "pod_monitor": {"namespace": "monitoring", "labels": {"release": "prometheus"}}}


def judged(document: Document) -> str | None:
    """Why a document is refused: by its schema, or as Kubeflow's model does not give back what it got."""
    found = problem(document)
    model = MODELS.get(document["kind"])
    if found is None and model is not None and json.loads(model.from_dict(document).to_json()) != document:
        found = "the model drops a part of it"
    return found


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_passes_and_belongs_together(form: str) -> None:
    assert [(each["kind"], judged(each)) for each in FORMS[form] if judged(each)] == []
    assert list(strife(FORMS[form])) == []


@pytest.mark.parametrize("fault", ONE_KIND)
def test_a_wrong_manifest_is_refused(fault: str) -> None:
    wrong = planted(FORMS["monitored"], ONE_KIND[fault])
    assert [each["kind"] for each in wrong if problem(each)] != []


@pytest.mark.parametrize("fault", TOGETHER)
def test_manifests_that_do_not_belong_together_are_found(fault: str) -> None:
    assert list(strife(planted(FORMS["monitored"], TOGETHER[fault]))) != []


def test_the_models_alone_let_a_wrong_name_pass() -> None:
    """Which is why what comes back is compared, and why there are schemas."""
    wrong = one(planted(FORMS["monitored"], ONE_KIND["numNodes where it was in 2.0"]), "TrainJob")
    assert json.loads(models.TrainerV1alpha1TrainJob.from_dict(wrong).to_json()) != wrong


def test_the_text_is_what_was_made_in_the_order_in_which_it_is_applied() -> None:
    found = manifests(made(MORE_JOB, MORE))
    text = manifest_files.documents(found)
    assert list(yaml.safe_load_all(text)) == [each.document for each in found]
    assert text == manifest_files.documents(manifests(made(MORE_JOB, MORE)))
    assert [each.file for each in found] == sorted(each.file for each in found)
    kinds = [each.document["kind"] for each in found]
    assert kinds == ["ResourceClaimTemplate", "ConfigMap", "PodMonitor", "TrainingRuntime", "TrainJob"]


def test_a_whole_job_to_the_letter() -> None:
    """What a person reads. After a change, write the text into the file, and read the difference."""
    cluster = {**MONITORED, "max_restarts": 3, "stop_timeout": 545, "queue": "gaudi", "topology_preferred": "rack"}
    text = manifest_files.documents(manifests(made(JOB, cluster)))
    assert text == Path(__file__).with_name("kubernetes_big.txt").read_text()


def test_an_interruption_starts_all_again_and_a_refusal_ends_the_job() -> None:
    policy = one(FORMS["least-jobset-dra"], "JobSet")["spec"]["failurePolicy"]
    rules = {each["onJobFailureMessagePatterns"][0]: each["action"] for each in policy["rules"]}
    again = "RestartJobSetAndIgnoreMaxRestarts"
    assert rules == {"exit code 2 ": "FailJobSet", "exit code 75 ": again, "DisruptionTarget": again}
    codes = [each.get("onExitCodes", {}).get("values") for each in
             job_template(FORMS["least-jobset-dra"])["spec"]["podFailurePolicy"]["rules"]]  # fmt: skip
    assert codes == [[2], [75], None]


def test_the_pods_read_the_job_with_what_only_the_launcher_knows(tmp_path: Path) -> None:
    job = made({**JOB, "cost": {"team": "a: b"}}, MONITORED)
    (tmp_path / "job.yml").write_text(job.text)
    read = load(tmp_path / "job.yml")
    assert read == job.config
    assert job.text.startswith("# Set by gaudi3-train kubernetes: device, output_dir, metrics.address\n")
    assert (str(read.output_dir), read.device, read.metrics.address) == ("/checkpoints/big", "hpu", "0.0.0.0")
    own = made({"device": "auto", "output_dir": "/checkpoints/x/y", "metrics": {"address": "::"}}, MONITORED).config
    assert (str(own.output_dir), own.device, own.metrics.address) == ("/checkpoints/x/y", "auto", "::")


def test_what_was_asked_for_is_in_the_pod() -> None:
    found, runs = pod(FORMS["more-trainjob-plugin"]), container(FORMS["more-trainjob-plugin"])
    assert runs["resources"]["limits"] == {
        "memory": "800Gi",
        "hugepages-2Mi": "95000Mi",
        "habana.ai/gaudi": "8",
    }
    assert runs["resources"]["requests"] == {"cpu": "128", **runs["resources"]["limits"]}
    assert found["terminationGracePeriodSeconds"] == 605
    known = variables(FORMS["more-trainjob-plugin"])
    assert known["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "540"
    assert known["LITERAL"] == "$$(NAME) 1e3", "Kubernetes puts variables in place of $(NAME)"
    assert (known["HF_HUB_OFFLINE"], known["OMP_NUM_THREADS"], known["HOME"]) == ("1", "4", "/tmp")
    mounts = {each["mountPath"]: each["name"] for each in runs["volumeMounts"]}
    assert (mounts["/data/corpus"], mounts["/checkpoints"]) == ("data-corpus", "checkpoints")
    cpu = FORMS["cpu-jobset"]
    assert "tolerations" not in pod(cpu) and "HABANA_LOGS" not in variables(cpu)
    assert [each["kind"] for each in cpu] == ["ConfigMap", "NetworkPolicy", "JobSet"]


def test_a_script_of_the_users_own_is_run_in_place_of_the_trainer() -> None:
    train = one(FORMS["script-trainjob"], "TrainJob")["spec"]["trainer"]
    assert train["args"] == ["--no-python", "python3", "train.py", "--name", "$$(NAME)"]
    assert variables(FORMS["script-trainjob"])["GAUDI3_JOB_DIRECTORY"] == "/checkpoints/big"
    assert container(FORMS["script-trainjob"])["workingDir"] == "/app"
    assert "ConfigMap" not in [each["kind"] for each in FORMS["script-trainjob"]]
    other = documents(None, {**SCRIPT, "command": ["/app/train"], "chdir": None})
    assert one(other, "TrainJob")["spec"]["trainer"]["args"] == ["--no-python", "/app/train"]
    for job, cluster, said in (
        (None, LEAST, "A job is a job file, or a command"),
        (JOB, SCRIPT, "A job is a job file, or a command"),
        (None, {**SCRIPT, "chdir": None}, "command is 'train.py', and the Kubernetes launcher needs an absolute path"),
        (
            None,
            {**SCRIPT, "image_folders": []},
            "command is /app/train.py, and the Kubernetes launcher finds it in none",
        ),
        (JOB, {**LEAST, "chdir": "/app"}, "and command is not given"),
    ):
        with pytest.raises(ConfigError, match=re.escape(said)):
            made(job, cluster)


def test_no_cards_are_asked_for_where_devices_is_none() -> None:
    cluster = {**{key: LEAST[key] for key in LEAST if key != "huge_pages"}, "devices": "none"}
    job = made(JOB, cluster)
    assert (job.config.device, job.on_cards) == ("cpu", False)
    assert [each["kind"] for each in documents(JOB, cluster)][:1] == ["ConfigMap"]
    with pytest.raises(ConfigError, match="device is hpu, and devices is none"):
        made({"device": "hpu"}, cluster)


def test_volumes_whose_names_would_be_equal_have_different_ones() -> None:
    folder = {"claim": "a", "access": "ReadWriteMany"}
    paths = ["/a/b", "/a-b", "/A_b", "/job", "/é"]
    found = pod(documents(JOB, {**LEAST, "volumes": [{**folder, "path": path} for path in paths]}))
    assert len({each["name"] for each in found["volumes"]}) == 3 + len(paths)


def test_only_the_job_and_prometheus_reach_the_pods() -> None:
    spec = one(FORMS["monitored"], "NetworkPolicy")["spec"]
    assert [each.get("ports") for each in spec["ingress"]] == [None, [{"protocol": "TCP", "port": 9410}]]
    closed = one(FORMS["least-trainjob-dra"], "NetworkPolicy")["spec"]
    assert len(closed["ingress"]) == 1


@pytest.mark.parametrize(
    ("job", "cluster", "said"),
    [
        ({}, {"name": "Big_Job"}, "name is 'Big_Job', but it has to be lower-case"),
        ({}, {"name": "4big"}, "with a letter first"),
        ({}, {"name": "b" * 49}, "name has 49 characters, and 48 are left"),
        ({}, {"name": "b" * 48, "nodes": 11}, "name has 48 characters, and 47 are left"),
        ({"device": "cuda"}, {}, "device is cuda, and the Kubernetes launcher"),
        ({}, {"processes_per_node": 4}, "processes_per_node is 4, and neither"),
        ({}, {"processes_per_node": 16}, "a node has 8 cards"),
        ({}, {"shared_memory": "800Gi"}, "shared_memory is 800Gi, which counts as memory"),
        ({}, {"environment": {"PET_NNODES": 2}}, "environment has PET_NNODES, which the Kubernetes launcher sets"),
        ({}, {"environment": {"HABANA_VISIBLE_DEVICES": "all"}}, "environment has HABANA_VISIBLE_DEVICES"),
        ({}, {"environment": {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": 9}}, "follows from stop_timeout"),
        ({}, {"environment": {"HF_TOKEN": "x"}}, "environment has HF_TOKEN, which looks like a secret"),
        ({}, {"environment": {"1A": "x"}}, "environment has '1A'"),
        ({}, {"volumes": [{"claim": "a", "access": "ReadWriteOnce", "path": "/checkpoints"}]}, "which is for one node"),
        ({}, {"volumes": [{"claim": "a", "access": "ReadWriteMany", "path": "/dev/x"}]}, "which pods have otherwise"),
        ({}, {"volumes": [{"host_path": "/mnt", "path": "/mnt"}]}, "do not share the volume at /mnt"),
        ({"output_dir": "run"}, {}, "output_dir is run, and the Kubernetes launcher needs it on a volume"),
        ({"output_dir": "/checkpoints/../x"}, {}, "output_dir is /checkpoints/../x, and"),
        ({"data": {"source": "corpus.txt"}}, {}, "data.source is 'corpus.txt', and the Kubernetes launcher needs"),
        ({"data": {"source": "/other/corpus"}}, {}, "data.source is /other/corpus, and the Kubernetes launcher"),
        ({"data": {"mixture": [{"source": "/a", "weight": 1}]}}, {}, "data.mixture.0.source is /a, and"),
        ({"data": {"tokenizer": "/a/t.json"}}, {}, "data.tokenizer is /a/t.json, and"),
        ({"data": {"directory": "/a"}}, {}, "data.directory is /a, and"),
        ({"model": {"name": "/models/x"}}, {}, "model.name is /models/x, and"),
        ({"checkpoint": {"target": "/backup"}}, {}, "checkpoint.target is /backup, and"),
        ({"checkpoint": {"signing_key_file": "/key"}}, {}, "checkpoint.signing_key_file is /key, and"),
        ({"interruption": {"sources": ["file"], "file": "/leave"}}, {}, "interruption.file is /leave, and"),
        ({"interruption": {"grace": 200}}, {}, "interruption.grace is 200 s, and stop_timeout leaves"),
        ({"cost": {"on_budget": "stop"}}, {}, "cost.on_budget is stop, which ends the job with exit code 75"),
        ({"tracking": {"mlflow_uri": "http://me:word@host"}}, {}, "tracking.mlflow_uri has a password"),
        ({"metrics": {"port": 29500}}, {}, "metrics.port is 29500, where the nodes of the job meet"),
        ({"metrics": {"address": "127.0.0.1"}}, MONITORED, "metrics.address is 127.0.0.1, where nothing outside"),
        ({"metrics": {"enabled": False}}, MONITORED, "metrics.enabled is false"),
        ({"metrics": {"port": 0}}, MONITORED, "metrics.port is 0, any free one"),
        ({"metrics": {"certificate": "/checkpoints/c", "key": "/checkpoints/k"}}, MONITORED, "Metrics over TLS take"),
        ({}, {"host_network": True}, "host_network is true, for which no NetworkPolicy holds"),
        ({}, {"topology_required": "rack"}, "are for Kueue, and queue is not given"),
        (
            {"checkpoint": {"signing_key_file": "/keys/key"}},
            {"run_as_user": 1000, "volumes": [*LEAST["volumes"], {"secret": "k", "path": "/keys"}]},
            "checkpoint.signing_key_file is /keys/key in a Secret",
        ),
        ({"cost": {"team": "x" * 1_000_001}}, {}, "and a ConfigMap holds"),
    ],
)  # fmt: skip
def test_what_kubernetes_does_not_carry_is_refused_in_a_sentence(
    job: dict[str, Any], cluster: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        made({**JOB, **job}, {**LEAST, **cluster})
    lines = str(refused.value).splitlines()
    assert any(said in line for line in lines), lines
    assert all(line.endswith(".") and line[0] != " " for line in lines)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"memory": "800"}, "memory is '800', but it has to be a whole number above 0 with Ki, Mi, Gi or Ti"),
        ({"memory": 800}, "memory is 800, but it has to be a whole number"),
        ({"huge_pages": "95001Mi"}, "huge_pages is '95001Mi', but it has to be a multiple of 2Mi"),
        ({"huge_pages": "256"}, "huge_pages is '256', but it has to be"),
        ({"cpu": "many"}, "cpu is 'many', but it has to be a number of cores"),
        ({"cpu": True}, "cpu is True, but it has to be"),
        ({"image": "registry.example:5000/train"}, "has no tag, or latest"),
        ({"image": "train:latest"}, "has no tag, or latest"),
        ({"image": "a b:1"}, "has to be the name of an image"),
        ({"image": "Team/train:1"}, "has to be the name of an image, in lower-case letters but for the registry"),
        ({"image": "Registry.example:5000/team/train__x:1.0_A@sha256:" + "0" * 64}, None),
        ({"image": "localhost/train:1"}, None),
        ({"image": "host:5000/train:1"}, None),
        ({"cpu": "٣"}, "cpu is '٣', but it has to be a number of cores"),
        ({"memory": "9" * 19 + "Gi"}, "but it has to be below 8388608Ti"),
        ({"nodes": 65534}, "nodes is 65534, but it has to be less than or equal to 65533"),
        ({"nodes": 0}, "nodes is 0, but it has to be greater than or equal to 1"),
        ({"nodes": "4"}, None),
        ({"namespace": "Training"}, "namespace is 'Training', but it has to be up to 63"),
        ({"kind": "job"}, "kind is 'job', but it has to be 'trainjob' or 'jobset'"),
        ({"volumes": []}, "volumes is empty"),
        ({"volumes": [{"path": "/a"}]}, "the volume at /a has nothing"),
        ({"volumes": [{"path": "/a", "claim": "a"}]}, "needs claim and access together"),
        ({"volumes": [{"path": "/a", "claim": "a", "access": "ReadOnlyMany"}]}, "and read_only is false"),
        ({"volumes": [{"path": "a", "secret": "a"}]}, "volumes.0.path is 'a', but it has to be an absolute path"),
        ({"volumes": [{"path": "/a", "secret": "a"}, {"path": "/a/b", "secret": "a"}]}, "/a/b below /a"),
        ({"volumes": [{"path": "/a", "secret": "a"}, {"path": "/a", "secret": "b"}]}, "volumes has /a twice"),
        ({"volumes": [{"path": "/a", "sekret": "a"}]}, "Unknown key 'volumes.0.sekret'"),
        ({"pod_monitor": {"namespace": "m"}}, "pod_monitor.labels is not given"),
        ({"pod_monitor": {"namespace": "m", "labels": {"a b": "c"}}}, "pod_monitor.labels"),
        ({"node_selector": {"-bad-": "y"}}, "but it has to be a label's name"),
        ({"node_selector": {"a.example/b/c": "y"}}, "but it has to be a label's name"),
        ({"node_selector": {"gaudi": "a b"}}, "but it has to be a label's value"),
        ({"node_selector": {"gaudi": "x" * 64}}, "but it has to be a label's value"),
        ({"node_selector": {"gaudi": "", "a.example/b_C.d": "x" * 63}}, None),
        ({"queue": "a", "topology_required": "a b"}, "but it has to be a label's name"),
        ({"queue": "q" * 64}, "queue is 'qqq"),
        ({"tolerations": [{"operator": "Exists", "key": "a", "value": "b"}]}, "operator Exists, which takes no value"),
        ({"tolerations": [{"value": "b"}]}, "operator Equal, which needs a key"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "which takes the effect NoExecute"),
        ({"tolerations": [{"key": "a b"}]}, "but it has to be a label's name"),
        ({"tolerations": [{"operator": "Exists"}]}, None),
        ({"run_as_user": 2**31}, "run_as_user is 2147483648"),
        ({"queue": "a", "topology_required": "a", "topology_preferred": "b"}, "are both set"),
        ({"imag": "x"}, "Unknown key 'imag' of the cluster: did you mean 'image'?"),
    ],
)
def test_a_wrong_key_of_the_cluster_is_refused_in_a_sentence(cluster: dict[str, Any], said: str | None) -> None:
    if said is None:
        made(JOB, {**LEAST, **cluster})
        return
    with pytest.raises(ConfigError) as refused:
        made(JOB, {**LEAST, **cluster})
    assert said in str(refused.value)


def test_all_that_has_no_source_is_asked_for_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        made(JOB, {})
    assert [line.partition(" ")[0] for line in str(refused.value).splitlines()] == list(ASKED)
    assert ASKED.keys() <= LEAST.keys()
    made({"device": "cpu"}, {key: value for key, value in LEAST.items() if key != "huge_pages"})


def test_huge_pages_can_be_left_out_by_name() -> None:
    found = documents(JOB, {**LEAST, "huge_pages": "none"})
    assert "hugepages" not in json.dumps(found)


#: Another value of each key of the cluster, with what it needs beside it.
OTHER: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "namespace": {"namespace": "other"},
    "image": {"image": "registry.example/gaudi3-train:2"},
    "nodes": {"nodes": 2},
    "processes_per_node": {"processes_per_node": 1},
    "cpu": {"cpu": "500m"},
    "memory": {"memory": "900Gi"},
    "shared_memory": {"shared_memory": "32Gi"},
    "huge_pages": {"huge_pages": "90000Mi"},
    "volumes": {"volumes": MORE["volumes"]},
    "kind": {"kind": "jobset"},
    "devices": {"devices": "plugin"},
    "command": {"command": ["/checkpoints/train.py"]},
    "chdir": {"command": ["train.py"], "chdir": "/checkpoints"},
    "max_restarts": {"max_restarts": 9},
    "stop_timeout": {"stop_timeout": 300},
    "threads": {"threads": 3},
    "environment": {"environment": {"ANY": "1"}},
    "environment_secrets": {"environment_secrets": ["keys"]},
    "queue": {"queue": "gaudi"},
    "topology_required": {"queue": "gaudi", "topology_required": "rack"},
    "topology_preferred": {"queue": "gaudi", "topology_preferred": "rack"},
    "pod_monitor": {"pod_monitor": {"namespace": "monitoring", "labels": {}}},
    "network_policy": {"network_policy": False},
    "image_pull_secrets": {"image_pull_secrets": ["registry"]},
    "node_selector": {"node_selector": {"rack": "a"}},
    "tolerations": {"tolerations": [{"key": "team", "operator": "Exists"}]},
    "service_account": {"service_account": "trainer"},
    "run_as_user": {"run_as_user": 1000},
    "run_as_group": {"run_as_group": 1000},
    "fs_group": {"fs_group": 1000},
    "host_network": {"host_network": True, "network_policy": False},
    "host_ipc": {"host_ipc": True},
}
ALLOWANCES = {"allow_partial_nodes": {"processes_per_node": 4}, "image_folders": {}}
"""Keys that let something pass, with what they let pass."""


def test_every_key_of_the_cluster_is_found_in_the_manifests_or_lets_something_pass() -> None:
    assert {*OTHER, *ALLOWANCES} == set(ClusterOptions.model_fields)
    same = []
    for key, values in OTHER.items():
        if "command" in values:
            continue  # see above
        without = {**LEAST, **{each: values[each] for each in values if each != key}}
        if documents(JOB, without) == documents(JOB, {**LEAST, **values}):
            same.append(key)
    assert same == []
    documents(JOB, {**LEAST, "allow_partial_nodes": True, **ALLOWANCES["allow_partial_nodes"]})
    documents({"model": {"name": "/opt/models/a"}}, {**LEAST, "image_folders": ["/opt/models"]})


@pytest.mark.parametrize("option", NOT_CARRIED)
def test_an_option_of_another_launcher_is_refused_by_name(option: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made(JOB, {**LEAST, option: 1})
    assert str(refused.value).startswith(f"{option} is set, and the Kubernetes launcher does not carry it: ")


def test_the_longest_names_are_those_that_fit() -> None:
    for nodes in (1, 10, 11, 100, 101, 1000):
        assert len(f"{'b' * longest_name(nodes)}-node-0-{nodes - 1}-abcde") == 63


def test_texts_that_a_reader_could_take_for_else_are_in_quotes() -> None:
    odd = [
        "1e3",
        "0o17",
        "0x1f",
        "no",
        "y",
        "~",
        "null",
        "1_000",
        "12:30",
        ".inf",
        "8",
        "",
        " a",
        "a: b",
        "#x",
        "2026-01-01",
    ]
    for text in odd:
        assert as_text({"value": text}) == f'value: "{text}"\n'
    for text in ("big", "/etc/gaudi3", "800Gi", "--no-python", "registry.example/train:1", "15s"):
        assert as_text({"value": text}) == f"value: {text}\n"
    for text in ('say "so"', "a\nb\n", "a\n b", " x\ny", "é\n", "\x00", "tab\there"):
        assert yaml.safe_load(as_text({"value": text})) == {"value": text}


def test_a_folder_has_the_manifests_of_one_job(tmp_path: Path) -> None:
    place = tmp_path / "big"
    manifest_files.write(manifests(made(JOB, LEAST)), place)
    first = {path.name: path.read_text() for path in place.iterdir()}
    assert sorted(first) == ["10-cards.yml", "20-job-file.yml", "30-network.yml", "50-runtime.yml", "60-job.yml"]
    manifest_files.write(manifests(made(JOB, LEAST)), place)
    assert {path.name: path.read_text() for path in place.iterdir()} == first
    manifest_files.write(manifests(made(JOB, {**LEAST, "kind": "jobset", "devices": "plugin"})), place)
    assert sorted(path.name for path in place.iterdir()) == ["20-job-file.yml", "30-network.yml", "60-job.yml"]
    (place / "other.yaml").write_text("kind: Pod\n")
    with pytest.raises(ConfigError, match=r"other\.yaml was not written by this command"):
        manifest_files.write(manifests(made(JOB, LEAST)), place)
    assert not (place / "50-runtime.yml").exists(), "nothing is written before it is refused"


def test_the_command_writes_or_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yml").write_text("train: {max_steps: 20}\n")
    Path("cluster.yml").write_text(yaml.safe_dump({key: LEAST[key] for key in LEAST if key not in ("name", "nodes")}))
    call = CliRunner().invoke
    words = ["kubernetes", "job.yml", "train.max_steps=30", "--cluster", "cluster.yml", "--name", "big", "--nodes", "2"]
    done = call(app, words)
    assert done.exit_code == 0, done.output
    found = list(yaml.safe_load_all(done.output))
    assert [each["kind"] for each in found][-1] == "TrainJob"
    assert "max_steps: 30" in one(found, "ConfigMap")["data"]["job.yml"]
    done = call(app, [*words, "--kind", "jobset", "--devices", "plugin", "--set", "cpu=64", "--to", "out"])
    assert done.output.splitlines() == [
        "out: ConfigMap, NetworkPolicy, JobSet",
        "check: kubectl apply --dry-run=server -f out",
        "start: kubectl apply -f out",
    ]
    assert 'cpu: "64"' in Path("out/60-job.yml").read_text()
    assert call(app, ["kubernetes", "--template"]).output == template()
    for wrong in (["kubernetes"], [*words, "--set", "image"], [*words, "--set", "a={"], ["kubernetes", "job.yml"]):
        refused = call(app, wrong).exception
        assert isinstance(refused, ConfigError), wrong
    Path("file").touch()
    assert "cannot be written" in str(call(app, [*words, "--to", "file"]).exception)


def test_the_template_has_every_key_and_can_be_filled_in(tmp_path: Path) -> None:
    text = template()
    values = yaml.safe_load(text)
    assert set(values) == set(ASKED)
    commented = yaml.safe_load(
        "\n".join(line[1:] for line in text.splitlines() if line.startswith("#") and line[1] != " ")
    )
    made(JOB, {**commented, **LEAST})
    with pytest.raises(ConfigError, match="name is not given"):
        (tmp_path / "cluster.yml").write_text(text)
        read_options(tmp_path / "cluster.yml", (), {}, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: 1\na: 2", "stands twice"), ("[", "is not valid YAML"), ("- a", "is a list"), ("\xff", "it is no UTF-8")],
)
def test_a_cluster_file_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=said):
        read_options(path, (), {}, True)
    path.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        read_options(path, (), {}, True)
