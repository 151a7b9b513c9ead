"""What the vendor's packages are called, what they need of each other, and what stands in for their content.

Names, architectures and paths are the vendor's. Dependencies are on the same release, as the vendor's set
has to
be installed; outside packages (dkms, kernel headers, compilers) are left out, since nothing is compiled here.
"""

from __future__ import annotations

from ..node import launchers, modules, releases
from . import hlml
from .deb import File, Package

_QUAL = "/opt/habanalabs/qual/{generation}/bin"
# The nine variables and their values are those of the vendor's page "Driver Installation" and of a public manual for
# 1.23.0; which of the two files sets which is UNCONFIRMED.
MODULES_LOAD = "/etc/modules-load.d/habanalabs.conf"
_ENVIRONMENT = """\
export GC_KERNEL_PATH=/usr/lib/habanalabs/libtpc_kernels.so
export HABANA_LOGS=/var/log/habana_logs/
export HABANA_SCAL_BIN_PATH=/opt/habanalabs/engines_fw
export HABANA_PLUGINS_LIB_PATH=/usr/lib/habanatools/habana_plugins
export HABANALABS_HLTHUNK_TESTS_BIN_PATH=/opt/habanalabs/src/hl-thunk/tests/
export DATA_LOADER_AEON_LIB_PATH=/usr/lib/habanalabs/libaeon.so
export __python_cmd=python3
"""
_RDMA_ENVIRONMENT = """\
export RDMA_CORE_ROOT=/opt/habanalabs/rdma-core/src
export RDMA_CORE_LIB=/opt/habanalabs/rdma-core/src/build/lib
"""


def packages(release: str) -> list[Package]:
    """The whole package set of ``release`` (``1.23.0-695``)."""

    def make(
        name: str,
        summary: str,
        architecture: str = "amd64",
        needs: tuple[str, ...] = (),
        others: tuple[str, ...] = (),
        files: dict[str, File] | None = None,
        scripts: dict[str, str] | None = None,
    ) -> Package:
        depends = tuple(f"habanalabs-{each} (= {release})" for each in needs) + others
        full = f"habanalabs-{name}"
        note = {f"/usr/share/gaudi3-simulator/{full}": File(f"{full} {release}: simulated stand-in. {summary}\n")}
        return Package(full, release, architecture, summary, depends, note | (files or {}), scripts or {})

    def tool(name: str) -> File:
        return File(launchers.vendor_text(name, release), 0o755)

    return [
        make(
            "dkms",
            "Kernel modules, for the running kernel.",
            "all",
            ("firmware",),
            ("kmod",),
            *_dkms(release),
        ),
        make(
            "firmware",
            "Boot images, which the driver loads at each probe.",
            files={path: File(text) for path, text in releases.firmware_files(release).items()},
        ),
        make(
            "firmware-tools",
            "hl-smi, and libhlml.so for programs.",
            needs=("thunk",),
            files={"/usr/bin/hl-smi": tool("hl-smi"), hlml.LIBRARY: File(hlml.library(release).read_bytes())},
        ),
        make(
            "firmware-odm",
            "SPI image and hl-fw-loader.",
            files={"/usr/bin/hl-fw-loader": tool("hl-fw-loader")},
        ),
        make("thunk", "User library of the driver (no code here).", "all"),
        make(
            "rdma-core",
            "The vendor's rdma-core (no code here).",
            "all",
            files={"/etc/profile.d/habanalabs-rdma-core.sh": File(_RDMA_ENVIRONMENT)},
        ),
        make(
            "graph",
            "Graph compiler and runtime (no code here).",
            needs=("thunk", "rdma-core"),
            files={
                "/etc/profile.d/habanalabs.sh": File(_ENVIRONMENT),
                "/usr/lib/habanalabs/libtpc_kernels.so": File("Simulated stand-in for the kernels of graphs.\n"),
            },
            scripts={"postinst": "#!/bin/sh\nset -e\ninstall -d -m 1777 /var/log/habana_logs\n"},
        ),
        make(
            "qual",
            "manage_network_ifs.sh, and an hl_qual that computes nothing.",
            needs=("graph", "firmware-tools"),
            others=("ethtool",),
            files={
                f"{_QUAL.format(generation=generation)}/{name}": tool(name)
                for generation in ("gaudi2", "gaudi3")
                for name in ("hl_qual", "manage_network_ifs.sh")
            },
        ),
        make("qual-workloads", "Workloads of hl_qual (no code here).", needs=("qual",)),
        make("container-runtime", "Container runtime hook (no code here)."),
        make("perf-test", "RDMA tests (no code here).", needs=("rdma-core",)),
    ]


def modules_load(release: str) -> str:
    """What systemd loads at boot: not the driver itself, as seen on two machines with 1.24.1.

    Which package the file belongs to is UNCONFIRMED.
    """
    return "".join(f"{name}\n" for name in releases.module_names(release) if name != "habanalabs")


def _dkms(release: str) -> tuple[dict[str, File], dict[str, str]]:
    """Files and scripts of the driver package: texts that the simulated kernel reads as modules."""
    source = f"/usr/src/habanalabs-{release}"
    names = releases.module_names(release)
    files = {f"{source}/{name}.ko": File(modules.module_text(name, release)) for name in names}
    files[MODULES_LOAD] = File(modules_load(release))
    target = '/lib/modules/"$(uname -r)"/updates/dkms'
    copies = "".join(f'cp -p {source}/{name}.ko "$folder"/{name}.ko\n' for name in names)
    removals = "".join(f'rm -f "$folder"/{name}.ko\n' for name in names)
    return files, {
        "postinst": f"#!/bin/sh\nset -e\nfolder={target}\n" + 'mkdir -p "$folder"\n' + copies,
        "prerm": f"#!/bin/sh\nset -e\nfolder={target}\n{removals}",
    }
