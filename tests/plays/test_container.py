"""Jobs in a container through the real role and playbooks, with stand-ins for podman, image and registry."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator import vault
from tests import stand_in_engine

from ..ansible_run import PlaybookRun
from .cluster import Cluster

RELEASE = "1.23.0-695"
NAME = "gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0"
UNIT = "gaudi-train-demo.service"
CONTROL = "/var/lib/gaudi3-scale/jobs/.control/demo"


def shelve(folder: Path) -> None:
    """An image on a registry's shelf, of one file."""
    config = json.dumps({"os": "linux"}).encode()
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    kind = "application/vnd.oci.image.manifest.v1+json"
    place = folder / "v2" / NAME
    (place / "blobs").mkdir(parents=True)
    (place / "manifests").mkdir()
    (place / "blobs" / digest).write_bytes(config)
    manifest = {"mediaType": kind, "config": {"digest": digest}, "layers": []}
    (place / "manifests" / RELEASE).write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry without TLS, by its name in an image's."""
    folder = tmp_path_factory.mktemp("registry")
    shelve(folder)
    server = vault.server("127.0.0.1", 0, str(folder), "localhost", True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def contained(registry: str, **more: Any) -> dict[str, Any]:
    """A site's variables; synapseai_release is the role's default."""
    return {
        "trainer_job_name": "demo",
        "trainer_runtime": "container",
        "trainer_container_registry": registry,
        "trainer_container_plain_http": True,
        "trainer_user": "nobody",
        "trainer_poll_interval": 0.1,
        **more,
    }


def have(cluster: Cluster, name: str, *packages: str) -> None:
    """A host has packages of its distribution."""
    path = cluster[name].folder / "packages.json"
    cluster[name].give(packages={**json.loads(path.read_text()), **dict.fromkeys(packages, "1")})


def test_what_is_in_the_way_stops_all_before_the_first_change(cluster: Cluster, registry: str) -> None:
    """Each node for a reason of its own, and the one that is well, too; nothing is asked of PyTorch's tarball."""
    cluster.gaudi(3, cards=1)
    cluster.all = contained(registry, pytorch_repository_url="http://127.0.0.1:9/pt")
    cluster.variables["gaudi-2"]["trainer_container_registry"] = "127.0.0.1:9"
    cluster.variables["gaudi-3"]["trainer_container_engine"] = "docker"
    run = cluster.play("site.yml", "--tags", "tuning,pytorch,train")
    assert run.returncode != 0 and run.changed() == set()
    told = {host: result["msg"] for host, _name, result in run.results() if result.get("failed")}
    assert told.pop("gaudi-2", "").startswith(
        f"127.0.0.1 cannot be reached for the image 127.0.0.1:9/{NAME}:{RELEASE} ("
    )
    assert told == {
        "gaudi-3": "/usr/bin/docker is not on this node: install docker, or set trainer_container_engine to podman."
    }
    assert run.result("gaudi-1", "Ask whether the container's image is there or can be pulled")["changed"] is False


@pytest.fixture(scope="module")
def site(new_cluster: Callable[[], Cluster], registry: str, wheel: str) -> Cluster:
    """A node with podman and a driver, and no PyTorch."""
    cluster = new_cluster()
    cluster.gaudi(1, cards=1)
    python = stand_in_engine.image_python(cluster.folder / "image", torch="2.9.0a0+git1", filelock="4")
    plugin = "1.23.0.695"
    stand_in_engine.give(
        python.parents[1], "habana_torch_plugin", plugin, "habana_frameworks", "habana_frameworks/torch"
    )
    for name, host in cluster.hosts.items():
        have(cluster, name, "podman", "catatonit")
        stand_in_engine.make(host.path("/usr/bin/podman"), cluster.folder / f"engine-{name}", str(python))
        host.write("/etc/gaudi3-scale/fabric.env", '# Of a test\nHCCL_OVER_OFI="1"\n')
        host.give(courses={UNIT: ["running", "finished"]})
    cluster.all = contained(
        registry, trainer_wheel=wheel, trainer_container_requirements=[], trainer_threads=2,
        trainer_root=str(cluster.folder / "opt"),
    )  # fmt: skip
    return cluster


@pytest.fixture(scope="module")
def predicted(site: Cluster) -> PlaybookRun:
    return site.role("trainer", "--check", "--diff")


@pytest.fixture(scope="module")
def first(site: Cluster, predicted: PlaybookRun) -> PlaybookRun:
    return site.role("trainer", "--diff", trainer_state="started")


def changes(run: PlaybookRun) -> set[str]:
    """What changed; the account of the test's user is not as the role wants it."""
    return {name.split(" : ")[1] for _host, name in run.changed()} - {"Create the user of the jobs"}


def test_a_job_in_a_container_is_predicted(site: Cluster, predicted: PlaybookRun) -> None:
    assert predicted.returncode == 0, (predicted.messages(), predicted.output)
    assert changes(predicted) == {"Pull the container's image", "Install the trainer", "Bring the job to its state"}
    assert not (site.folder / "opt").exists()
    for name in site.hosts:
        assert not [call for call in stand_in_engine.calls(site.folder / f"engine-{name}") if call[0] != "image"]


def test_a_job_runs_in_a_container(site: Cluster, registry: str, predicted: PlaybookRun, first: PlaybookRun) -> None:
    assert first.returncode == 0, (first.messages(), first.output)
    assert changes(first) == changes(predicted)
    image = f"{registry}/{NAME}:{RELEASE}"
    assert ["pull", "--quiet", "--tls-verify=false", image] in stand_in_engine.calls(site.folder / "engine-gaudi-1")
    (place,) = (site.folder / "opt/container").iterdir()
    for name, host in site.hosts.items():
        unit = host.path(f"/etc/systemd/system/{UNIT}").read_text()
        (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        assert start.startswith("/usr/bin/podman run --rm --name=gaudi-train-demo ") and f" {image} " in start
        assert f" {image} {place}/venv/bin/python -m gaudi3_scale.launch --status=" in start
        assert start.endswith(f" --no-python {place}/venv/bin/gaudi3-train fit --config {CONTROL}/config.yml")
        assert " --env=HCCL_SOCKET_IFNAME=eth0 " in start and " --env=OMP_NUM_THREADS=2 " in start
        assert " --device=/dev/accel " in start and f" --env-file={CONTROL}/container.env " in start
        assert host.path(f"{CONTROL}/container.env").read_text() == "HCCL_OVER_OFI=1\n"
        assert host.mode(f"{CONTROL}/container.env") == 0o640
        # The vendor's variables are the image's.
        assert not host.path("/etc/gaudi3-scale/runtime.env").exists(), name
    shown = first.result("gaudi-1", "Bring the job to its state")["diff"]
    assert any("ExecStopPost=-/usr/bin/podman rm --force --ignore gaudi-train-demo" in each["after"] for each in shown)


def test_a_second_run_changes_nothing(site: Cluster, first: PlaybookRun) -> None:
    again = site.role("trainer", trainer_state="started")
    assert again.returncode == 0 and changes(again) == set(), (again.messages(), again.changed())
