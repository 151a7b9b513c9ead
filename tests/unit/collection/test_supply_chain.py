"""Every pinned package comes with its hashes, and nothing is installed from a list of pins without asking for them."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PINNED = sorted((ROOT / "requirements").glob("*.txt"))
NAME = re.compile(r"[-_.]+")


def requirements(path: Path) -> list[str]:
    """Requirements of a file, each with its hashes on one line."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def pins(path: Path) -> dict[str, str]:
    pairs = (line.split()[0].split("==") for line in requirements(path))
    return {NAME.sub("-", name).lower(): version for name, version in pairs}


@pytest.mark.parametrize("path", PINNED, ids=lambda path: path.stem)
def test_every_requirement_is_pinned_with_its_hashes(path: Path) -> None:
    pin = re.compile(
        r"[A-Za-z0-9][\w.-]*==[\w.+!-]+(?: *; sys_platform [!=]= '\w+')?(?: +--hash=sha256:[0-9a-f]{64})+ *"
    )
    assert requirements(path)
    assert [line[:60] for line in requirements(path) if not pin.fullmatch(line)] == []


@pytest.mark.parametrize("path", PINNED, ids=lambda path: path.stem)
def test_what_is_wanted_is_pinned(path: Path) -> None:
    wanted = re.findall(r"^([A-Za-z0-9][\w.-]*)", path.with_suffix(".in").read_text(), re.MULTILINE)
    known = {*pins(path), *pins(ROOT / "requirements/controller.txt"), *pins(ROOT / "requirements/trainer.txt")}
    assert {NAME.sub("-", name).lower() for name in wanted} <= known


def test_torch_is_pinned_where_it_comes_from_one_index() -> None:
    assert [path.name for path in PINNED if "torch" in pins(path)] == ["torch-cuda.txt", "torch.txt"]
    assert list(pins(ROOT / "requirements/torch.txt")) == ["torch"]
    builds = [line.split("--hash")[0].strip() for line in requirements(ROOT / "requirements/torch.txt")]
    assert builds == ["torch==2.13.0+cpu ; sys_platform != 'darwin'", "torch==2.13.0 ; sys_platform == 'darwin'"]


#: Calls of pip and words about them, in whatever form: a command, a list of words, `$(INSTALL)` of the Makefile.
CALL = re.compile(r"""\bpip3?["',\s]+(?:install|download|wheel)\b|\$\(INSTALL\)|\bensurepip\b""")
#: Nothing comes from an index: a folder of the checkout, built with what is installed already.
LOCAL = re.compile(r"--no-deps .*--no-build-isolation|--no-build-isolation .*--no-deps|--no-index")
#: What a person is advised to type, on a machine of their own. The extras are pinned in requirements/extras.txt.
ADVICE = re.compile(r"pip install (?:'\./trainer\[[\w,]+\]'|\./trainer(?![\w\[/])|boto3\b|transformers\b|hatchling\b)")
#: The other calls that ask for no hashes, each with the reason.
WITHOUT = {
    ("docs/operate/refusals.md", "ensurepip is missing"): "a message",
    ("Makefile", "import venv, ensurepip"): "looks whether the module is there",
    ("plugins/module_utils/_variables/controller.py", "-m pip install "): "advice; install.md has the pinned way",
    ("docs/start/install.md", "pip install 'ansible-core"): "for a person, with the pinned way beside it",
    ("docs/start/install.md", "pip install torch==2.13.0 --index-url"): "for a person who tries the trainer out",
    ("docs/start/install.md", "pip install --no-deps ./trainer"): "a folder; what it needs came with hashes before",
    ("docs/start/first-training.md", "pip install torch==2.13.0 --index-url"): "likewise",
    ("trainer/src/gaudi3_scale/extras.py", "pip install "): "advice; the extras are pinned in requirements/extras.txt",
    ("simulator/torch/README.md", "pip install --no-deps"): "a folder of the checkout",
    ("plugins/module_utils/_pytorch/install.py", "ensurepip is missing"): "a message",
    ("plugins/module_utils/_pytorch/env.py", "ensurepip"): "looks whether the module is there",
}


def sources() -> list[Path]:
    """Every text of the repository that may call pip.

    Tests play with made-up packages, and a finding shows a library without the product, in a folder of its own.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    left_out = re.compile(
        r"(?:.*/)?tests/|benchmarks/.*\.json|changelogs/|requirements/.*\.txt|proofs/|findings/|collections/"
    )
    names = [name for name in listed.split("\0") if name and not left_out.match(name)]
    return [ROOT / name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def word_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def calls_of_python(text: str) -> list[str]:
    """Functions with lists of words that make a call of pip, and texts that name one."""
    found = []
    tree = ast.parse(text)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        lists = [node.elts for node in ast.walk(function) if isinstance(node, ast.List | ast.Tuple)]
        pairs = [(one, two) for each in lists for one, two in pairwise(each)]
        if any(word_of(one) == "pip" and word_of(two) in {"install", "download", "wheel"} for one, two in pairs):
            found.append(" ".join(filter(None, map(word_of, ast.walk(function)))))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]
    return found + [each for each in texts if CALL.search(each)]


def calls(path: Path) -> list[str]:
    """Every call of pip in a file, on one line each."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    if not re.search(r"\bpip3?\b|ensurepip|INSTALL", text):
        return []
    if path.suffix == ".py":
        return calls_of_python(text)
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if CALL.search(line)]


def has_hashes(call: str) -> bool:
    return "--require-hashes" in call or "$(INSTALL)" in call


def test_every_call_of_pip_asks_for_hashes_or_is_of_this_checkout() -> None:
    seen, used = [], set()
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for call in calls(path):
            reasons = [key for key in WITHOUT if key[0] == name and key[1] in call]
            used |= set(reasons)
            if not (has_hashes(call) or LOCAL.search(call) or ADVICE.search(call) or reasons):
                seen.append(f"{name}: {call[:160]}")
    assert seen == []
    assert set(WITHOUT) - used == set(), "no longer there"
    assert "--require-hashes --only-binary=:all:" in (ROOT / "Makefile").read_text().partition("INSTALL := ")[2]


@pytest.mark.parametrize(
    "call",
    [
        "pip install rich==15.0.0",
        "python3 -m pip install --no-deps rich",
        "pip download torch",
        "$(BIN)/python -m pip install --quiet wheel",
        "RUN pip3 install -r requirements.txt",
        "python -m ensurepip --upgrade",
    ],
)
def test_a_call_without_hashes_is_found(call: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM x\n{call}\n")
    (found,) = calls(tmp_path / "Dockerfile")
    assert not (has_hashes(found) or LOCAL.search(found) or ADVICE.search(found))
    (tmp_path / "a.py").write_text(
        'def f(run):\n    argv = [x, "-m", "pip", "install"]\n    run([*argv, "rich==15.0.0"])\n'
    )
    (found,) = calls(tmp_path / "a.py")
    assert not (has_hashes(found) or LOCAL.search(found) or ADVICE.search(found))


def test_what_is_installed_with_hashes_on_a_node_is_never_built() -> None:
    """A build fetches what it needs without hashes."""
    for name in ("plugins/module_utils", "simulator/src"):
        for path in (ROOT / name).rglob("*.py"):
            for call in calls(path):
                if "--require-hashes" in call:
                    assert "--only-binary=:all:" in call or "--no-index" in call, path


def test_no_second_index_may_win() -> None:
    pages = [ROOT / "trainer/README.md", *(ROOT / "docs").rglob("*.md")]
    places = [ROOT / "Makefile", *(ROOT / "simulator/src").rglob("*.py"), *pages]
    assert [path.name for path in places if "--extra-index-url" in path.read_text(encoding="utf-8")] == []


def test_every_package_is_built_by_the_pinned_hatchling() -> None:
    version = pins(ROOT / "requirements/controller.txt")["hatchling"]
    for package in ("trainer", "benchmark-tool", "doctor", "migration", "watch", "simulator", "deploy"):
        system = tomllib.loads((ROOT / package / "pyproject.toml").read_text())["build-system"]
        assert system["requires"] == [f"hatchling=={version}"], package


def test_the_trainers_wheel_has_the_list() -> None:
    inside = ROOT / "trainer/src/gaudi3_scale/requirements.txt"
    assert (ROOT / "requirements/trainer.txt").resolve() == inside
    assert pins(inside)["lightning"] == "2.6.6" and "torch" not in pins(inside)
