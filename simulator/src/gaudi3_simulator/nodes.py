"""The containers of a cluster: a node each, and the vault that serves the vendor's repository."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import SimulatorError, prepared
from .home import Cluster, Node, home, write_atomically
from .node import paths, strictness
from .node.launchers import boot_loader_files, image_files
from .podman import Podman
from .systems import DEFAULT, PRESENTATIONS, SYSTEMS, choose, distribution, shown_kernel
from .vendor import bytecode

_NODE_PACKAGE = Path(__file__).resolve().parent / "node"
_NODE_TARGET = "/usr/lib/gaudi3-simulator/gaudi3_simulator_node"
_VAULT = Path(__file__).resolve().parent / "vault.py"
# All containers of a machine have its boot id. A node gets another with each start, before systemd asks for it.
_INIT = (
    "mkdir -p /run/gaudi3-simulator && cat /proc/sys/kernel/random/uuid > /run/gaudi3-simulator/boot_id && "
    "mount --bind /run/gaudi3-simulator/boot_id /proc/sys/kernel/random/boot_id; exec /sbin/init"
)
_CAPABILITIES = "NET_ADMIN,SYS_ADMIN,SYS_PTRACE,SYS_NICE,IPC_LOCK"


def label(cluster: str) -> str:
    """Label on every container of ``cluster`` under this home folder."""
    return f"gaudi3-simulator={hashlib.sha256(str(home()).encode()).hexdigest()[:8]}-{cluster}"


def container(cluster: Cluster, node: str) -> str:
    """Name of the container of ``node``."""
    return f"gaudi3-{cluster.name}-{node}"


def let_in(podman: Podman, cluster: Cluster, node: Node) -> None:
    """The image's first user, as cloud-init sets it up: a key, and sudo without a password."""
    keys = cluster.key.with_suffix(".pub").read_text() + cluster.authorized_key
    home_folder = "/root" if cluster.user == "root" else f"/home/{cluster.user}"
    script = """set -eu
if ! id -u "$1" >/dev/null 2>&1; then
  useradd --create-home --shell /bin/bash "$1"
  echo "$1 ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/90-cloud-init-users
  chmod 0440 /etc/sudoers.d/90-cloud-init-users
fi
install -d -m 0700 -o "$1" "$2/.ssh"
printf '%s\n' "$3" > "$2/.ssh/authorized_keys"
chown "$1" "$2/.ssh/authorized_keys"
chmod 0600 "$2/.ssh/authorized_keys"
"""
    name = container(cluster, node.name)
    podman.run("exec", name, "bash", "-c", script, "let-in", cluster.user, home_folder, keys.strip())


def _vault_address(cluster: Cluster) -> str:
    return str(list(ipaddress.ip_network(cluster.subnet))[2])


def storage_host() -> str:
    """Name of the host that packages come from, a second one of the vault's; nothing where that is the index's own."""
    return "vault-storage" if strictness.is_on("package-redirect") else ""


def storage_arguments() -> list[str]:
    """How the vault names the storage host, and whether that host has more than packages."""
    return [storage_host(), *(["whole"] if strictness.is_on("download-redirect") else [])]


def start_vault(podman: Podman, cluster: Cluster, image: str) -> None:
    podman.run(
        "run", "-d", "--replace", "--restart=always", "--name", container(cluster, "vault"), "--hostname", "vault",
        "--label", label(cluster.name), "--network", cluster.network, "--ip", _vault_address(cluster),
        "--read-only", "-v", f"{home() / 'vendor'}:/srv:ro", "-v", f"{_VAULT}:/usr/local/lib/vault.py:ro", image,
        "/usr/bin/python3", "/usr/local/lib/vault.py", "80", "/srv", *storage_arguments(),
    )  # fmt: skip


def start_node(podman: Podman, cluster: Cluster, node: Node, image: str) -> None:
    name = container(cluster, node.name)
    saved = cluster.images.get(node.name)
    podman.run(
        "create", "--replace", "--restart=always", "--name", name, "--hostname", node.name, "--systemd=always",
        "--label", label(cluster.name), "--network", cluster.network, "--ip", node.address,
        "--cap-add", _CAPABILITIES, "--security-opt", "unmask=/proc/sys",
        "--mac-address", _mac_address(node),
        "-v", f"{cluster.folder / f'hosts-{node.name}'}:/etc/hosts", saved or image, "/bin/sh", "-c", _INIT,
    )  # fmt: skip
    if saved:
        podman.run("start", name)
        return
    with tempfile.TemporaryDirectory(dir=cluster.folder) as folder:
        root = Path(folder)
        _write(root / "root/.ssh/authorized_keys", 0o600, cluster.key.with_suffix(".pub").read_text())
        # Ansible warns where it has to make its folder itself.
        (root / "root/.ansible/tmp").mkdir(parents=True)
        (root / "root/.ansible/tmp").chmod(0o700)
        (root / "root").chmod(0o700)
        (root / "root/.ssh").chmod(0o700)
        if choose(cluster.system, cluster.present_as).python == SYSTEMS[DEFAULT].python:
            _write(root / "etc/pip.conf", 0o644, bytecode.PIP_CONF)
        if node.cards:
            _add_cards(root, node, cluster)
            key = home() / "vendor/artifactory/api/gpg/key/public"
            lay_out(root, prepared.files(key.read_text() if key.exists() else ""))
        shown = shown_kernel.files(cluster.kernel) if cluster.kernel else {}
        if cluster.present_as:
            shown |= distribution.files(PRESENTATIONS[cluster.present_as], cluster.kernel)
        for path, content in shown.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        podman.run("cp", f"{root}/.", f"{name}:/")
    podman.run("start", name)


def _mac_address(node: Node) -> str:
    """A locally administered address that stays: after a power cycle the peers' ARP caches still hold."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in node.address.split("."))


def _write(path: Path, mode: int, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def lay_out(root: Path, files: dict[str, prepared.File]) -> None:
    """Put files of a node below ``root``."""
    for path, file in files.items():
        target = root / path.lstrip("/")
        if file.target:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file.target)
        else:
            _write(target, file.mode, file.text)


def _add_cards(root: Path, node: Node, cluster: Cluster) -> None:
    """Lay out under ``root`` what makes a container a Gaudi node: the simulated hardware and kernel, and its state."""
    package = root / _NODE_TARGET.lstrip("/")
    shutil.copytree(_NODE_PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    presented = PRESENTATIONS.get(cluster.present_as)
    tools = {**image_files(), **boot_loader_files(presented is not None and presented.family == "rhel")}
    for target, (mode, text) in tools.items():
        _write(root / target.lstrip("/"), mode, text)
    wants = root / "etc/systemd/system/sysinit.target.wants/gaudi3-simulator.service"
    wants.parent.mkdir(parents=True)
    wants.symlink_to("/etc/systemd/system/gaudi3-simulator.service")
    if node.twin:
        _write(root / paths.STATE.lstrip("/"), 0o644, node.twin)
        return
    chosen = {"--board": cluster.board, "--profile": cluster.profile}
    options = [word for option, value in chosen.items() if value for word in (option, value)]
    subprocess.run(
        [
            sys.executable, "-m", "gaudi3_simulator_node",
            "init", "--node", node.name, "--cards", str(node.cards), *options,
        ],
        env={**os.environ, "PYTHONPATH": str(package.parent), "GAUDI3_SIMULATOR_ROOT": str(root)}, check=True,
    )  # fmt: skip


def wait_until_booted(podman: Podman, cluster: Cluster, node: Node) -> None:
    """Until systemd says that ``node`` runs; a unit that failed is an error."""
    name = container(cluster, node.name)
    deadline = time.monotonic() + 120
    state = ""
    while time.monotonic() < deadline:
        state = podman.run("exec", name, "systemctl", "is-system-running", "--wait", check=False).stdout.strip()
        if state == "running":
            if node.cards:
                # The tools are started often: without bytecode each start would compile them again.
                podman.run("exec", name, "python3", "-m", "compileall", "-q", str(Path(_NODE_TARGET).parent))
            return
        if state == "degraded":
            failed = podman.run("exec", name, "systemctl", "--failed", "--plain", "--no-legend").stdout
            units = ", ".join(line.split()[0] for line in failed.splitlines() if line.strip())
            raise SimulatorError(f"{node.name} booted, but these units failed: {units}.")
        time.sleep(0.5)
    raise SimulatorError(f"{node.name} did not finish booting in 120 s (systemd says: {state or 'nothing'}).")


def update_hosts(cluster: Cluster) -> None:
    """Every node knows every other by name, nodes that came later included, also after a reboot.

    Each node's /etc/hosts is a file of its own outside of it: podman writes the container's own at each start.
    """
    vaults = ["vault", storage_host()] if storage_host() else ["vault"]
    for node in cluster.all_nodes():
        addresses = {other.name: other.address for other in cluster.all_nodes()}
        if strictness.is_on("own-name-on-loopback"):
            addresses[node.name] = "127.0.1.1"  # as the installers of Debian and Ubuntu write it
        lines = ["127.0.0.1 localhost", *(f"{_vault_address(cluster)} {name}" for name in vaults)]
        lines += [f"{address} {name}" for name, address in addresses.items()]
        hosts = cluster.folder / f"hosts-{node.name}"
        before = hosts.read_text().splitlines() if hosts.exists() else []
        # A name that is another machine's by now would be found at its old address first.
        kept = [line for line in before if addresses.get(line.partition(" ")[2], line.split(" ")[0]) in line.split(" ")]
        after = kept + [line for line in lines if line not in kept]
        if after != before:
            # Written where it is: the node holds this very file.
            with hosts.open("w") as stream:
                stream.writelines(f"{line}\n" for line in after)


def record_host_keys(podman: Podman, cluster: Cluster) -> None:
    """known_hosts from the nodes themselves, so that host key checking stays on."""
    lines = []
    for node in cluster.all_nodes():
        key = podman.run("exec", container(cluster, node.name), "cat", "/etc/ssh/ssh_host_ed25519_key.pub").stdout
        kind, public, *_ = key.split()
        lines.append(f"{node.address} {kind} {public}")
    write_atomically(cluster.folder / "known_hosts", "\n".join(lines) + "\n")
