"""ansible-test sanity on a staged copy of the collection, without anything but the package index."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, run

# ansible-test fetches pip's bootstrap script from its own site for each tool's environment. Where that is out of
# reach, this one in the place that it looks first does the same with the pip that Python carries.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_GET_PIP = '''\
"""Stand-in for get-pip.py: the pip that Python carries, brought up to date from the configured index."""
import subprocess
import sys

keep = [each for each in sys.argv[1:] if each not in ("--no-setuptools", "--no-wheel")]
subprocess.check_call([sys.executable, "-m", "ensurepip"])
subprocess.check_call([sys.executable, "-m", "pip", "install", "--upgrade", *keep])
'''


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection outside of the work tree, where ansible-test's own notion of the root holds."""
    target = tmp_path_factory.mktemp("stage") / "ansible_collections" / "gaudi3" / "scale"
    target.mkdir(parents=True)
    outside = [
        "collections",
        "trainer",
        "benchmark-tool",
        "doctor",
        "migration",
        "watch",
        "simulator",
        "benchmarks",
        "extensions",
    ]
    outside += ["inventories"]
    listed = run(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".",
        *(f":!{folder}" for folder in outside),
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("tests/") and not name.startswith("tests/sanity"):
            continue
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    bootstrap = Path.home() / ".ansible" / "test" / "cache" / "get_pip_24_2.py"
    if not bootstrap.exists():
        bootstrap.parent.mkdir(parents=True, exist_ok=True)
        bootstrap.write_text(_GET_PIP)
    return target


def test_sanity(staged: Path) -> None:
    result = run("ansible-test", "sanity", "--venv", "--python", PYTHON, "--color", "no", cwd=staged, timeout=1500)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output[-6000:]
    assert "All targets skipped" not in output
    assert "No tests applicable" not in output
    tested = set(re.findall(r"Running sanity test ['\"]([\w-]+)", output))
    assert {"validate-modules", "import", "compile", "pylint", "ansible-doc", "yamllint"} <= tested


def test_sanity_sees_a_fault(staged: Path) -> None:
    """The check above is not blind: a module whose documentation lacks an option is found."""
    module = staged / "plugins" / "modules" / "gaudi_pci_facts.py"
    text = module.read_text()
    module.write_text(
        text.replace("argument_spec={", "argument_spec={'undocumented': {'type': 'str'}, ", 1).replace(
            "argument_spec=dict(", "argument_spec=dict(undocumented=dict(type='str'), ", 1
        )
    )
    try:
        assert module.read_text() != text
        result = run(
            "ansible-test", "sanity", "--venv", "--python", PYTHON, "--color", "no", "--test", "validate-modules",
            "plugins/modules/gaudi_pci_facts.py", cwd=staged,
        )  # fmt: skip
        assert result.returncode != 0
        assert "undocumented" in result.stdout + result.stderr
    finally:
        module.write_text(text)
