"""What can be said of the configurations without running them: one interface, all described, checked, in step."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, TREE
from .support.hcl import Module, bare, check_references, check_schema, load_schema

CLOUDS = ("aws", "azure", "gcp", "ibm", "onprem")
MODULES = ("cluster", "inventory", *CLOUDS)
PROVIDERS = {"azure": "azurerm", "gcp": "google", "ibm": "ibm"}
SCHEMAS = {
    **{each: Path(__file__).parent / "schemas" / f"{each}.json" for each in ("azurerm", "google")},
    "ibm": ROOT / "simulator/src/gaudi3_simulator/cloud/schemas/ibm-2.1.0.json",
}
INTERFACE = {
    "cluster_size", "instance_type", "accept_other_accelerators", "accept_withdrawn_type", "extra_instance_types",
    "name", "tags", "allowed_cidrs", "ssh_public_key", "jump_host", "teardown",
}  # fmt: skip
MACHINES = {
    "dedicated_monitor", "nvme_mount", "root_volume_gb", "network_cidr", "max_hourly_usd", "node_usd_per_hour", "ttl",
    "idle_shutdown",
}  # fmt: skip
#: IBM's bucket needs a key pair, which is shown to nobody.
SECRET = {"ibm": {"checkpoint_environment"}}
OUTPUTS = {"cluster_endpoints", "master_ip", "cluster"}


@pytest.fixture(scope="module")
def parsed() -> dict[str, Module]:
    """Every module and every root, by its path under terraform/."""
    folders = [*(f"modules/{name}" for name in MODULES), *CLOUDS]
    return {folder: Module(TREE / folder) for folder in folders}


def test_format(terraform: str) -> None:
    done = subprocess.run(
        [terraform, "fmt", "-check", "-recursive", str(TREE)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, ""), "run terraform fmt -recursive terraform"


def test_a_lock_file_locks_nobody_out() -> None:
    """One made on one platform has the checksums of that platform only, and `terraform init` fails on all others."""
    listed = subprocess.run(
        ["git", "ls-files", "--", ":/*.terraform.lock.hcl"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        providers = re.findall(r'^provider "([^"]+)" \{\n(.*?)^\}', (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
        few = {provider: body.count('"h1:') for provider, body in providers if body.count('"h1:') < 4}
        assert few == {}, f"{name}: linux and darwin, on amd64 and arm64, need a checksum each"


def test_the_generated_files_are_in_step() -> None:
    done = subprocess.run(
        [sys.executable, str(TREE / "generate.py"), "--check"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_generated_files_being_out_of_step_is_seen(tmp_path: Path) -> None:
    copy = tmp_path / "terraform"
    shutil.copytree(TREE, copy)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "plugins/module_utils/_cloud").mkdir(parents=True)
    shutil.copy(ROOT / "plugins/module_utils/_cloud/instance_data.py", tmp_path / "plugins/module_utils/_cloud")
    text = (copy / "modules/aws/variables.tf").read_text()
    (copy / "modules/aws/variables.tf").write_text(
        text.replace('default     = "us-west-2"', 'default     = "us-east-1"')
    )
    done = subprocess.run(
        [sys.executable, str(copy / "generate.py"), "--check"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    told = [line.split()[0] for line in done.stdout.splitlines()]
    assert told == ["terraform/aws/variables.tf", "terraform/aws/README.md"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_each_variable_and_output_is_listed_once(parsed: dict[str, Module], cloud: str) -> None:
    """A root's README has its own, that of the whole tree those of every cloud, and the module's points there."""
    of_all, own = (re.findall(r"^\| `(\w+)`", path.read_text(), re.MULTILINE) for path in (
        TREE / "README.md", TREE / cloud / "README.md"
    ))  # fmt: skip
    module = parsed[f"modules/{cloud}"]
    names = {*module.named("variable"), *module.named("output")}
    assert len(set(of_all)) == len(of_all) and set(of_all).isdisjoint(own)
    assert names - set(of_all) == set(own), "listed nowhere, or of no variable"
    assert [name for name in of_all if name not in names] == (
        [] if cloud != "onprem" else sorted(MACHINES & set(of_all))
    )
    assert f"../../{cloud}/README.md" in (TREE / "modules" / cloud / "README.md").read_text()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_one_interface(parsed: dict[str, Module], cloud: str) -> None:
    wanted = INTERFACE | (MACHINES | {"region", "monitor_instance_type", "capacity"} if cloud != "onprem" else set())
    for folder in (f"modules/{cloud}", cloud):
        variables = parsed[folder].named("variable")
        assert wanted | {"ssh_user"} <= set(variables), folder
        assert set(parsed[folder].named("output")) == OUTPUTS | SECRET.get(cloud, set())
        for name in INTERFACE | (MACHINES & set(variables)):
            first = parsed["modules/aws"].named("variable")[name]
            for key in ("type", "default", "description", "nullable"):
                assert variables[name].get(key) == first.get(key), f"{folder}: {name} differs in its {key}"
    assert (TREE / cloud / "interface.tf").read_text() == (TREE / "modules/aws/interface.tf").read_text()


def test_only_size_and_type_have_no_default(parsed: dict[str, Module]) -> None:
    for cloud in CLOUDS:
        needed = {name for name, body in parsed[cloud].named("variable").items() if "default" not in body}
        assert needed == {"cluster_size", "instance_type"}
    assert parsed["aws"].named("variable")["allowed_cidrs"]["default"] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_variable_is_typed_described_and_checked(parsed: dict[str, Module], name: str) -> None:
    module = parsed[f"modules/{name}"]
    called = {bare(call["source"]): call for call in module.named("module").values()}
    for variable, body in module.named("variable").items():
        where = f"modules/{name}: {variable}"
        assert body.get("type"), where
        assert re.match(r'"[A-Z].*[.)"]"?$', str(body["description"])), f"{where} needs a sentence of description"
        passed = [
            source for source, call in called.items() if re.search(rf"\bvar\.{variable}\b", str(call.get(variable, "")))
        ]
        inner = [parsed[f"modules/{source.rpartition('/')[2]}"].named("variable")[variable] for source in passed]
        checked = "validation" in body or body["type"] == "bool" or any(
            "validation" in each or each["type"] == "bool" for each in inner
        )  # fmt: skip
        assert checked, f"{where} is checked nowhere"


@pytest.mark.parametrize("name", MODULES)
def test_null_is_the_default_or_refused_by_name(parsed: dict[str, Module], name: str) -> None:
    """Without this, a null, as --var NAME= gives, comes out as an invalid argument of some function."""
    for variable, body in parsed[f"modules/{name}"].named("variable").items():
        wanted = None if "default" in body and body["default"] is None else False
        assert body.get("nullable") == wanted, f"modules/{name}: {variable}"


@pytest.mark.parametrize("folder", [*(f"modules/{name}" for name in MODULES), *CLOUDS])
def test_every_output_is_described(parsed: dict[str, Module], folder: str) -> None:
    for name, body in parsed[folder].named("output").items():
        assert re.match(r'"[A-Z].*\.', str(body["description"])), f"{folder}: {name}"


@pytest.mark.parametrize("cloud", [cloud for cloud in CLOUDS if cloud != "onprem"])
def test_checkpoints_are_destroyed_on_purpose_only(parsed: dict[str, Module], cloud: str) -> None:
    module = parsed[f"modules/{cloud}"]
    assert module.named("variable")["destroy_checkpoints"]["default"] is False
    users = [each.address for each in module.resources() if "var.destroy_checkpoints" in str(each.body)]
    assert len(users) == 1, f"modules/{cloud}: nothing keeps 'terraform destroy' from deleting checkpoints"


@pytest.mark.parametrize("cloud", ["aws", "ibm"])
def test_keys_that_a_cloud_does_not_take_are_refused(parsed: dict[str, Module], cloud: str) -> None:
    """EC2 and IBM Cloud take RSA and ED25519; ECDSA keys and those of a hardware token are refused by the plan."""
    given = parsed[f"modules/{cloud}"].named("module")["cluster"]["ssh_key_types"]
    assert [bare(each) for each in given] == ["ssh-ed25519", "ssh-rsa"]


def test_machines_on_aws_have_no_policy_but_their_own(parsed: dict[str, Module]) -> None:
    """AmazonSSMManagedInstanceCore, for one, would let every node read all parameters of the account."""
    resources = [each for each in parsed["modules/aws"].resources() if each.kind == "resource"]
    attached = {
        str(each.body["role"])
        for each in resources
        if re.fullmatch(r"aws_iam_(role_)?policy_attachment|aws_iam_role_policy_attachments_exclusive", each.type)
    }
    # The budget's role is assumed by AWS Budgets and no machine has it.
    assert attached == {"${aws_iam_role.budget[0].name}"}
    assert [each.address for each in resources if "managed_policy_arns" in map(bare, each.body)] == []


@pytest.mark.parametrize("cloud", ["azure", "gcp"])
def test_a_cloud_without_gaudi_says_so_first(cloud: str) -> None:
    for readme in (TREE / cloud / "README.md", TREE / "modules" / cloud / "README.md"):
        assert readme.read_text().splitlines()[0] == f"# {cloud}: not for Gaudi"
    types = json.loads((TREE / "catalogue/instances.json").read_text())["types"].values()
    assert not [each for each in types if each["cloud"] == cloud and each["gaudi_generation"]]


def test_every_message_is_one_sentence() -> None:
    for path in TREE.glob("modules/*/*.tf"):
        for line in re.findall(r"^\s+error_message\s+= (.*)$", path.read_text(), re.MULTILINE):
            for text in re.findall(r'"((?:[^"\\$]|\\.|\$\{(?:[^{}"]|"[^"]*"|\{[^}]*\})*\})*)"', line):
                plain = re.sub(r"\$\{(?:[^{}]|\{[^}]*\})*\}", "X", text)
                if len(plain) < 25:
                    continue
                assert plain.endswith((".", "X")), f"{path.name}: {text}"
                assert not re.search(r"[a-z]{2}\. [A-Z]", plain), f"{path.name} says more than one sentence: {text}"


@pytest.mark.parametrize("folder", [*(f"modules/{name}" for name in MODULES), *CLOUDS])
def test_references_lead_somewhere(parsed: dict[str, Module], folder: str) -> None:
    provider = PROVIDERS.get(folder.rpartition("/")[2])
    schema = load_schema(SCHEMAS[provider]) if provider else None
    assert check_references(parsed[folder], schema) == []


@pytest.mark.parametrize(("cloud", "blocks"), [("azure", 18), ("gcp", 13), ("ibm", 35)])
def test_the_provider_knows_every_argument(parsed: dict[str, Module], cloud: str, blocks: int) -> None:
    schema = load_schema(SCHEMAS[PROVIDERS[cloud]])
    assert check_schema(parsed[f"modules/{cloud}"], schema) == (blocks, [])


@pytest.mark.parametrize(
    ("cloud", "file", "right", "wrong", "told"),
    [
        ("azure", "compute.tf", "accelerated_networking_enabled", "enable_accelerated_networking",
         "azurerm_network_interface.host: unknown argument enable_accelerated_networking"),
        ("azure", "network.tf", "  virtual_network_name            = azurerm_virtual_network.cluster.name\n", "",
         "azurerm_subnet.nodes: virtual_network_name is required and missing"),
        ("gcp", "compute.tf", "shielded_instance_config {", "shielded_config {",
         "google_compute_instance.node: unknown block shielded_config"),
        ("gcp", "compute.tf", "      image = var.image\n", "      images = var.image\n",
         "google_compute_instance.node.boot_disk.initialize_params: unknown argument images"),
        ("ibm", "compute.tf", "response_hop_limit", "hop_limit",
         "ibm_is_instance.node.metadata_service: unknown argument hop_limit"),
        ("ibm", "network.tf", 'resource "ibm_is_vpc" "cluster"', 'resource "ibm_vpc" "cluster"',
         "ibm_vpc.cluster: unknown resource type"),
    ],
)  # fmt: skip
def test_the_schema_check_sees_faults(tmp_path: Path, cloud: str, file: str, right: str, wrong: str, told: str) -> None:
    folder = tmp_path / cloud
    shutil.copytree(TREE / "modules" / cloud, folder)
    text = (folder / file).read_text()
    assert right in text
    (folder / file).write_text(text.replace(right, wrong, 1))
    schema = load_schema(SCHEMAS[PROVIDERS[cloud]])
    assert told in check_schema(Module(folder), schema)[1]


def test_a_reference_to_nothing_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "gcp"
    shutil.copytree(TREE / "modules/gcp", folder)
    text = (folder / "outputs.tf").read_text()
    (folder / "outputs.tf").write_text(
        text.replace(".network_interface[0].network_ip", ".private_ip").replace("var.name", "var.nam")
    )
    schema = load_schema(SCHEMAS["google"])
    found = check_references(Module(folder), schema)
    assert found == ["google_compute_instance.node has no attribute private_ip", "var.nam is not declared"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_modules_use_no_provider_but_their_clouds(parsed: dict[str, Module], cloud: str) -> None:
    own = {"aws": {"hashicorp/aws"}, "azure": {"hashicorp/azurerm"}, "gcp": {"hashicorp/google"},
           "ibm": {"IBM-Cloud/ibm"}, "onprem": set()}  # fmt: skip
    assert parsed[f"modules/{cloud}"].providers() == parsed[cloud].providers() == own[cloud]
    kinds = {each.type.partition("_")[0] for each in parsed[f"modules/{cloud}"].resources()}
    assert kinds <= {"terraform", *(source.rpartition("/")[2] for source in own[cloud])}
    text = parsed[f"modules/{cloud}"].text + parsed[cloud].text
    assert not re.search(r"moto|endpoints\s*\{|skip_\w+\s*=|simulat", text), "the modules know nothing of tests"


def test_the_catalogue_is_whole() -> None:
    types = json.loads((TREE / "catalogue/instances.json").read_text())["types"]
    keys = {frozenset(each) for each in types.values()}
    assert len(keys) == 1
    for name, each in types.items():
        assert each["cloud"] in CLOUDS, name
        assert each["source"], name
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", each["seen"]), name
        assert each["efa_interfaces"] <= each["network_cards"], name
        assert each["refused"] or each["cards"] >= 1, name
        dates = [each[key] for key in ("seen", "source_date") if each[key]]
        # The day of looking, and the day of the fact: a price that was seen today may be five years old.
        for price in each["prices"]:
            assert price["source"], name
            dates += [price["seen"], price["source_date"]]
        withdrawn = each["withdrawn"] or {}
        dates += [withdrawn[key] for key in ("since", "seen") if withdrawn]
        assert [date for date in dates if not re.fullmatch(r"20\d\d-\d\d-\d\d", date or "")] == [], name
        assert not withdrawn or withdrawn["source"], name
    gaudi = {name: each["gaudi_generation"] for name, each in types.items() if each["gaudi_generation"]}
    assert gaudi == {
        "dl1.24xlarge": 1, "gx3d-160x1792x8gaudi3": 3, "onprem-gaudi3-8": 3, "onprem-gaudi2-8": 2,
    }  # fmt: skip
    assert {name for name, each in types.items() if each["withdrawn"]} == {"dl1.24xlarge"}
    assert types["gx3d-160x1792x8gaudi3"]["nic_gbps"] == 32
    assert {name for name, each in types.items() if each["refused"]} == {
        "dl2q.24xlarge", "dl2q.48xlarge", "Standard_HX176rs",
    }  # fmt: skip
