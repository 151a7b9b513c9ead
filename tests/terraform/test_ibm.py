"""terraform/ibm, unmodified, against a simulated IBM Cloud (gaudi3_simulator.cloud): never the provider's own."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.cloud import ibm, mirror
from gaudi3_simulator.cloud.world import World

from .conftest import ROOT, TREE
from .support import standin
from .support.standin import RSA, Account, account
from .support.tool import KEY, Project, clean_environment

pytestmark = pytest.mark.usefixtures("terraform")
ENTRY: dict[str, Any] = {"public_entry": "monitor", "allowed_cidrs": '["198.51.100.7/32"]'}
ENOUGH = {"vcpu": 2000, "storage_gb": 400_000, "gpu": 100}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Account:
    """An account in which nothing is made, and an initialised copy of the tree."""
    if not standin.PYTHON.exists():
        pytest.skip("the stand-in's environment is missing: this was NOT checked (make .cache/standin/ready)")
    return account(tmp_path_factory.mktemp("shared"))


@contextmanager
def another(shared: Account, folder: Path) -> Iterator[Account]:
    """A further account, and a state of its own, for the same copy of the tree; its provider stays for all calls."""
    world = World(folder / "world")
    world.set("quota", **ENOUGH)
    settings = {**shared.project.environment, "GAUDI3_STANDIN_WORLD": world.path}
    with mirror.attached("ibm", "2.5.0", standin.PYTHON, settings) as environment:
        yield Account(folder, world, Project(shared.project.folder, environment, name=f"s{uuid.uuid4().hex}"))


@pytest.fixture
def fresh(shared: Account, tmp_path: Path) -> Iterator[Account]:
    """An account of the test's own."""
    with another(shared, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def running(shared: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """A cluster of one node, made by the first command of the documents."""
    with another(shared, tmp_path_factory.mktemp("running")) as made:
        made.call("apply", **ENTRY)
        yield made


def machines(world: World) -> dict[str, dict[str, Any]]:
    """Machines by name."""
    return {row["name"]: row for row in world.rows("ibm_is_instance")}


def test_what_is_made(running: Account) -> None:
    (key,) = running.world.rows("ibm_is_ssh_key")
    assert (key["type"], key["public_key"]) == ("ed25519", KEY)
    node = machines(running.world)["gaudi-01"]
    assert (node["zone"], node["profile"], len(node["network_attachments"])) == ("us-east-2", standin.GAUDI, 4)
    subnets = [each["virtual_network_interface"][0]["subnet"] for each in node["network_attachments"]]
    assert len(set(subnets)) == 4, "interfaces in one subnet would answer for each other"

    assert "cluster network" not in running.said.output, "one node has nobody to reach"
    outputs = running.project.outputs()
    assert outputs["cluster"]["jump_host"] == "ubuntu@203.0.113.10"
    monitor = outputs["cluster_endpoints"]["gaudi-monitor"]
    assert (monitor["public_ip"], monitor["connect_to"]) == ("203.0.113.10", "203.0.113.10")
    stored, flow = sorted(running.world.rows("ibm_cos_bucket"), key=lambda row: str(row["bucket_name"]))
    assert outputs["cluster"]["checkpoint_target"] == f"s3://{stored['bucket_name']}/gaudi/checkpoints"
    assert stored["noncurrent_version_expiration"][0]["noncurrent_days"] == 30
    assert (stored["force_delete"], flow["force_delete"]) == (False, False)
    endpoint = "https://s3.direct.us-east.cloud-object-storage.appdomain.cloud"
    assert outputs["cluster"]["variables"] == {"gaudi_checkpoint_endpoint": endpoint, "fabric_kind": "host_tcp"}


def test_no_secret_is_shown_and_the_key_pair_may_do_little(running: Account) -> None:
    (key,) = running.world.rows("ibm_resource_key")
    (secret,) = [value for name, value in key["credentials"].items() if "secret" in name]
    assert secret not in running.said.output
    assert running.project.outputs()["checkpoint_environment"].splitlines() == [
        f"AWS_ACCESS_KEY_ID={key['credentials']['cos_hmac_keys.access_key_id']}",
        f"AWS_SECRET_ACCESS_KEY={secret}",
    ]
    assert json.loads(running.project.state.read_text())["outputs"]["checkpoint_environment"]["sensitive"] is True
    # What the key may do is what its service id may do, and that is the bucket's objects alone.
    assert (key["role"], key["parameters"]["HMAC"]) == ("NONE", "true")
    roles = ["Object Writer", "Content Reader", "gaudi checkpoint pruning"]
    for kind in ("ibm_iam_service_policy", "ibm_iam_trusted_profile_policy"):
        assert [row["roles"] for row in running.world.rows(kind)] == [roles]
    (own,) = running.world.rows("ibm_iam_custom_role")
    assert "cloud-object-storage.object.delete" in own["actions"]
    assert not [action for action in own["actions"] if "version" in action or "delete_bucket" in action]


def test_a_second_plan_is_empty_whatever_ibm_renames_or_moves(running: Account) -> None:
    """A newer image, and other zones of the profile, are no reason to replace what runs."""
    running.world.set("images", **{"ibm-ubuntu-24-04-7-minimal-amd64-1": {"status": "available"}})
    running.world.set("profiles", **{standin.GAUDI: {"data_centers": ["us-east-wdc04-a", "us-east-wdc06-a"]}})
    running.call("plan", "-detailed-exitcode", **ENTRY)


def test_scaled_and_a_lost_node_made_again(running: Account) -> None:
    before = machines(running.world)
    ibm.delete(running.world, "ibm_is_instance", before["gaudi-01"])
    running.call("apply", **{**ENTRY, "cluster_size": "16"})
    after = machines(running.world)
    assert set(after) == {"gaudi-01", "gaudi-02", "gaudi-monitor"}
    assert after["gaudi-monitor"]["id"] == before["gaudi-monitor"]["id"]
    assert after["gaudi-01"]["id"] != before["gaudi-01"]["id"]


def test_checkpoints_stop_a_destroy_until_it_is_meant(running: Account) -> None:
    (bucket,) = [row for row in running.world.rows("ibm_cos_bucket") if "checkpoints" in row["bucket_name"]]
    running.world.put("_object", "one", {"bucket": bucket["bucket_name"]})
    meant: dict[str, Any] = {**ENTRY, "teardown": "true"}
    running.call("destroy", code=1, **meant)
    assert "BucketNotEmpty" in running.said.output
    assert [row["bucket_name"] for row in running.world.rows("ibm_cos_bucket")] == [bucket["bucket_name"]]
    assert (len(running.world.rows("_object")), machines(running.world)) == (1, {})
    meant["destroy_checkpoints"] = "true"
    running.call("apply", "-target=module.cluster.ibm_cos_bucket.checkpoints", **meant)
    running.call("destroy", **meant)
    assert running.world.kinds() == {}


def test_a_key_and_a_network_that_are_there_and_spot(fresh: Account) -> None:
    world = fresh.world
    vpc, subnet, key = (f"{prefix}-{uuid.uuid4()}" for prefix in ("r014", "0757", "r014"))
    about = {"_region": "us-east", "zone": "us-east-3", "vpc": vpc, "name": "mine"}
    world.put("ibm_is_vpc", vpc, {**about, "default_security_group": "r014-d"})
    world.put("ibm_is_subnet", subnet, {**about, "ipv4_cidr_block": "10.60.0.0/24"})
    world.put("ibm_is_ssh_key", key, {**about, "public_key": KEY, "fingerprint": "", "type": "ed25519"})
    there: dict[str, Any] = {
        "subnet_id": subnet,
        "capacity": "spot",
        "checkpoint_credentials": "none",
        "dedicated_monitor": "false",
    }
    assert fresh.errors(**there) == [
        'ssh_public_key is in this account already, where IBM takes a key once in a region: set ssh_key_name = "mine" '
        "instead."
    ]
    fresh.call("apply", ssh_key_name="mine", **there)
    node = machines(world)["gaudi-01"]
    assert (node["zone"], node["keys"], node["availability"]) == ("us-east-3", [key], [{"class": "spot"}])
    assert fresh.project.outputs()["cluster_endpoints"]["gaudi-01"]["market"] == "spot"
    assert (fresh.project.outputs()["checkpoint_environment"], world.rows("ibm_resource_key")) == ("", [])
    fresh.call("destroy", ssh_key_name="mine", teardown="true", **there)
    assert world.kinds() == {"ibm_is_vpc": 1, "ibm_is_subnet": 1, "ibm_is_ssh_key": 1}


def test_quota_and_capacity_end_and_it_goes_on(fresh: Account) -> None:
    size: dict[str, Any] = {"cluster_size": "24", "flow_logs": "false", "network_interfaces": "1"}
    fresh.world.set("quota", vcpu=200, storage_gb=18000, gpu=16)
    fresh.call("apply", code=1, **size)
    assert "Allocated: 0, Requested: 25600, Quota: 18000 (code: over_quota)" in " ".join(fresh.said.output.split())
    warned = " ".join(fresh.said.output.split())
    assert "need 480 vCPU, 24 GPUs and 76800 GB of instance storage, and a new account has 200, 16 and 18000" in warned
    assert (
        "These 3 nodes reach each other over the VPC network only, with at most 32 Gbit/s for an interface: IBM says "
        f"of {standin.GAUDI} that it has no cluster network." in warned
    )
    assert set(machines(fresh.world)) == {"gaudi-monitor"}

    fresh.world.set("quota", **ENOUGH)
    calls = fresh.world.setting("calls").get("ibm_is_instance", 0)
    fault: dict[str, Any] = {"after": calls + 1, "times": 1, "code": "no_capacity", "text": "There is no capacity"}
    fresh.world.set("faults", ibm_is_instance=fault)
    fresh.call("apply", code=1, **size)
    assert len(machines(fresh.world)) == 3
    fresh.call("apply", **size)
    assert len(machines(fresh.world)) == 4


def planned(account: Account, **variables: Any) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """What a plan makes, by type, and the outputs as far as they are known by then."""
    plan = str(account.folder / "plan")
    account.call("plan", "-out", plan, **variables)
    return read_plan(account.project, plan)


def read_plan(project: Project, plan: str) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """See `planned`."""
    shown = json.loads(project.run("show", "-json", plan).output)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in shown["planned_values"]["root_module"]["child_modules"][0]["resources"]:
        found.setdefault(each["type"], []).append(each["values"])
    return found, {name: each.get("after") for name, each in shown["output_changes"].items()}


def test_the_newest_image_by_its_numbers_and_an_rsa_key(fresh: Account) -> None:
    """6 is newer than 5, and 10 than 3; neither the obsolete nor the deprecated ones count."""
    fresh.world.set("images", **{"ibm-ubuntu-24-04-6-minimal-amd64-10": {"status": "available"}})
    fresh.project.environment["TF_VAR_ssh_public_key"] = RSA
    made, _outputs = planned(fresh)
    image = {each["image"] for each in made["ibm_is_instance"]}
    assert image == {standin.image_id("ibm-ubuntu-24-04-6-minimal-amd64-10")}
    assert [each["type"] for each in made["ibm_is_ssh_key"]] == ["rsa"]


def test_what_a_team_has_already_is_used_and_not_made(fresh: Account) -> None:
    """A VPC, keys, a root key, a reservation and an image of the catalogue."""
    vpc, key, reservation = (f"r014-{uuid.uuid4()}" for _each in range(3))
    root = "crn:v1:bluemix:public:kms:us-east:a/x:y:key:z"
    made, outputs = planned(
        fresh, vpc_id=vpc, ssh_key_ids=json.dumps([key]), encryption_key_crn=root, capacity="reservation",
        reservation_id=reservation, catalog_offering=OFFERING, ssh_user="gaudi", ssh_public_key="",
    )  # fmt: skip
    assert {"ibm_is_vpc", "ibm_is_ssh_key"} & {*made} == set()
    for kind in ("ibm_is_subnet", "ibm_is_instance", "ibm_is_security_group", "ibm_is_public_gateway"):
        assert {each["vpc"] for each in made[kind]} == {vpc}, kind
    machines = {each["name"]: each for each in made["ibm_is_instance"]}
    assert {name: (each["keys"], each["boot_volume"][0]["encryption"]) for name, each in machines.items()} == {
        "gaudi-01": ([key], root), "gaudi-monitor": ([key], root)
    }  # fmt: skip
    assert {each["key_protect"] for each in made["ibm_cos_bucket"]} == {root}
    (affinity,) = machines["gaudi-01"]["reservation_affinity"]
    assert (affinity["policy"], affinity["pool"][0]["id"]) == ("manual", reservation)
    assert not machines["gaudi-monitor"].get("reservation_affinity"), "it is of another profile"
    versions = {each["catalog_offering"][0]["version_crn"] for each in machines.values()}
    assert versions == {OFFERING.split('"')[1]}
    assert {each["ssh_user"] for each in outputs["cluster_endpoints"].values()} == {"gaudi"}
    assert outputs["cluster_endpoints"]["gaudi-01"]["market"] == "reservation"


@pytest.mark.parametrize(
    ("image", "user"),
    [("ibm-redhat-ai-intel-1-5-amd64-1", "cloud-user"), ("ibm-redhat-9-6-minimal-amd64-2", "vpcuser")],
)
def test_a_red_hat_image_lets_a_user_of_its_own_in(fresh: Account, image: str, user: str) -> None:
    fresh.world.set("images", **{image: {"status": "available"}})
    made, outputs = planned(fresh, image=image)
    assert {each["image"] for each in made["ibm_is_instance"]} == {standin.image_id(image)}
    assert {each["ssh_user"] for each in outputs["cluster_endpoints"].values()} == {user}


def test_the_example_from_outside_the_tree(shared: Account, tmp_path: Path) -> None:
    """As somebody has it who takes the module from where it is published: the package holds all that it needs."""
    text = (TREE / "examples/ibm/main.tf").read_text()
    (tmp_path / "main.tf").write_text(text.replace("../../modules/", f"{shared.project.folder.parent}//modules/"))
    environment = {each: value for each, value in shared.project.environment.items() if each != "TF_DATA_DIR"}
    project = Project(tmp_path, {**environment, "TF_VAR_my_address": "198.51.100.7"})
    project.init()
    done = project.change("plan", "-out", str(tmp_path / "plan"))
    assert done.code == 0, done.output
    made, _outputs = read_plan(project, str(tmp_path / "plan"))
    assert {each["name"]: (each["profile"], each["zone"]) for each in made["ibm_is_instance"]} == {
        "trial-01": (standin.GAUDI, "us-east-2"), "trial-monitor": ("bx2-2x8", "us-east-2")
    }  # fmt: skip
    assert len(made["ibm_is_floating_ip"]) == 1
    admitted = {each["remote"] for each in made["ibm_is_security_group_rule"] if each.get("port_min") == 22}
    assert admitted == {"198.51.100.7/32"}
    assert shared.world.kinds() == {}


OFFERING = '{version_crn="crn:v1:bluemix:public:globalcatalog-collection:global:a/x:y:version:z"}'
ECDSA = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY= me"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"network_interfaces": "16", "public_entry": "existing", "capacity": "cheap", "catalog_offering": OFFERING},
            ["network_interfaces is 16: give 1 to 15, as the profile has at most 15.",
             "public_entry is existing, but jump_host is empty: give the host through which ssh reaches the VPC, as "
             "user@host.",
             "capacity is 'cheap': give on-demand, spot or reservation.",
             "catalog_offering is given without ssh_user: leave image empty, and name the user that the image lets in "
             "as ssh_user."],
        ),
        (
            {"zone": "us-east-1", "image": "ibm-ubuntu-24-04-2-minimal-amd64-5"},
            ["zone is 'us-east-1', which does not have gx3d-160x1792x8gaudi3: give us-east-2 or us-east-3, or leave it "
             "empty.",
             "image is 'ibm-ubuntu-24-04-2-minimal-amd64-5', which is obsolete, so that no machine can be made of it: "
             "leave image empty for the newest of image_pattern."],
        ),
        (
            {"image_pattern": "^none$"},
            ["image_pattern is '^none$', which no available image in us-east matches: look with 'ibmcloud is images "
             "--status available', or name one as image."],
        ),
        (
            {"ssh_public_key": ECDSA, "public_entry": "monitor"},
            ["ssh_public_key is of type ecdsa-sha2-nistp256, but ibm takes ssh-ed25519 and ssh-rsa only: make one with "
             "ssh-keygen -t ed25519.",
             "public_entry is monitor, but no network may reach it: set allowed_cidrs to your own address, such as "
             "198.51.100.7/32."],
        ),
    ],
)  # fmt: skip
def test_what_is_refused_while_planning(shared: Account, variables: dict[str, str], expected: list[str]) -> None:
    found = shared.errors(**variables)
    assert [each for each in expected if each not in found] == []
    assert shared.world.kinds() == {}


def test_no_spot_no_room_and_no_credentials(fresh: Account) -> None:
    fresh.world.set("profiles", **{standin.GAUDI: {"classes": ["standard"], "interfaces": 3}})
    found = fresh.errors(capacity="spot", root_volume_gb="300")
    assert found == [
        "root_volume_gb is 300, but a boot volume on IBM Cloud has 250 GB at most: give 100 to 250, and keep data on "
        "/scratch.",
        "network_interfaces is 5, but a gx3d-160x1792x8gaudi3 has 3 at most: give no more than these.",
        "capacity is spot, but IBM Cloud does not sell a gx3d-160x1792x8gaudi3 as spot in us-east: set capacity = "
        "on-demand.",
    ]
    del fresh.project.environment["TF_REATTACH_PROVIDERS"]
    fresh.project.environment["IC_API_KEY"] = ""
    fresh.errors()
    assert "No IBM Cloud credentials" in fresh.said.output


def test_the_smoke_script_destroys_what_a_failure_left(fresh: Account) -> None:
    fault = {"code": "no_capacity", "text": "There is no capacity"}
    fresh.world.set("faults", ibm_is_floating_ip=fault)
    public = fresh.folder / "key.pub"
    public.write_text(KEY + "\n")
    out = fresh.folder / "out"
    command = [str(ROOT / "examples/ibm-smoke.sh"), "--key", public.name, "--from", "198.51.100.7/32", "--yes"]
    del fresh.project.environment["TF_REATTACH_PROVIDERS"]
    secret = {"IC_API_KEY": "not-for-others", "TF_DATA_DIR": str(fresh.folder / "data")}
    own = {**clean_environment(), **fresh.project.environment, **secret}
    done = subprocess.run(
        [*command, "--no-ssh", "--out", out.name], cwd=fresh.folder, env=own, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr
    steps = re.findall(r"^(\S+) exit=(\d+)", (out / "report/steps.txt").read_text(), re.MULTILINE)
    assert dict(steps) == {"version": "0", "init": "0", "validate": "0", "plan": "0", "apply": "1", "destroy": "0"}
    assert fresh.world.kinds() == {}
    with tarfile.open(out / "ibm-smoke-report.tar.gz") as report:
        texts = [member.read() for each in report.getmembers() if (member := report.extractfile(each))]
    assert "There is no capacity" in b"".join(texts).decode()
    assert b"not-for-others" not in b"".join(texts)
    assert not re.search(rb"a/[0-9a-f]{32}", b"".join(texts))


def test_the_smoke_script_asks_for_what_it_needs() -> None:
    done = subprocess.run(
        [str(ROOT / "examples/ibm-smoke.sh")],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "ibm-smoke: no credentials: set IC_API_KEY\n")


def test_the_lowest_release_that_is_admitted_has_every_argument(tmp_path: Path, shared: Account) -> None:
    lowest = re.search(r'version = ">= ([0-9.]+), < 3"', (TREE / "modules/ibm/versions.tf").read_text())
    assert lowest is not None
    assert account(tmp_path, f"{lowest[1]}.0").project.run("validate", "-no-color").code == 0


def test_the_checkout_has_no_lock_file_of_the_stand_in(shared: Account) -> None:
    """It would refuse the true provider; it is in the copy that the tests ran in."""
    assert (shared.project.folder / ".terraform.lock.hcl").exists()
    assert [path for path in TREE.rglob(".terraform*") if "ibm" in path.parts] == []
