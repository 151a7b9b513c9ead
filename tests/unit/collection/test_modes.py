"""Files and folders have the mode that is written down, whatever the umask of the one who runs a playbook."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
PYTHON = sorted([*(ROOT / "plugins").rglob("*.py"), *(ROOT / "roles").rglob("*.py")])
HELPER = "plugins/module_utils/_files.py"

#: Methods and functions that make a file or a folder whose mode the umask cuts.
MAKERS = {"mkdir", "makedirs", "mknod", "mkfifo", "touch", "write_text", "write_bytes", "copyfile", "copy", "copy2"}
MAKERS |= {"copytree"}
#: What may make files otherwise, and why the umask does no harm.
ALLOWED = {
    "plugins/module_utils/_host/kernel_settings.py:_write": "a file of the kernel, which is there already",
    "plugins/module_utils/_jobs/mirrored_image.py:_fetch": "in a temporary folder of the function's own",
    "plugins/module_utils/_pytorch/env.py:keep": "a draft that only its maker reads, removed again",
    "plugins/module_utils/_trainer/doctor.py:unpack": "in the task's own temporary folder",
    "plugins/module_utils/_module_bodies/claim.py:_back_up": "a copy, which gets the mode of the file",
    "plugins/module_utils/_module_bodies/claim.py:_claim": "a copy that is put back, which gets the mode of the file",
    "roles/serving/files/gaudi_serving_replica.py:_write": "in the service's own folder, under its unit's umask",
    "plugins/module_utils/_serving/releases.py:make": "a draft whose modes are set before it gets its name",
    "plugins/module_utils/_apt/node.py:verify": "in a temporary folder of the function's own",
    "plugins/modules/trainer_wheel.py:build": "copies in a draft that only its maker reads, removed again",
}

#: Options of Ansible's own modules that make a file or a folder of a mode.
MODES = ("mode", "directory_mode")
WRITERS = {
    "copy", "template", "get_url", "file", "unarchive", "lineinfile", "blockinfile", "assemble", "replace",
    "deb822_repository", "yum_repository", "apt_repository", "tempfile", "cron", "git", "ini_file",
}  # fmt: skip
#: Tasks without a mode, and why.
WITHOUT_MODE = {"Unpack the wrapper's source": "only root reads it, to build a library of it"}


def writes(call: ast.Call) -> bool:
    """Whether a call makes a file or a folder with a mode that the umask cuts."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(call.func.value, "id", "") if isinstance(call.func, ast.Attribute) else ""
    # A mode for the owner alone is left as it is by every umask that is in use.
    if name == "open" and owner == "os":
        text = ast.unparse(call)
        return "O_CREAT" in text and "384" not in text  # 0o600
    if name == "mkdir" and owner == "os" and len(call.args) == 2:
        return ast.unparse(call.args[1]) != "448"  # 0o700
    if name == "open" and isinstance(call.func, ast.Name):
        modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
        fresh = ast.unparse(call.args[0]).startswith("os.open(")  # which is looked at for itself
        return not fresh and any(set("wax+") & set(str(getattr(each, "value", "w"))) for each in modes)
    if name == "open" and owner not in ("tarfile", "zipfile"):
        return any(isinstance(each, ast.Constant) and set("wax") & set(str(each.value)) for each in call.args[:1])
    return name in MAKERS and not (name == "copy" and owner not in ("shutil",))


def makers(path: Path) -> Iterator[str]:
    """The functions of a file that make files or folders, each as FILE:FUNCTION."""
    tree = ast.parse(path.read_text())
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)):
        if any(isinstance(each, ast.Call) and writes(each) for each in ast.walk(function)):
            yield f"{path.relative_to(ROOT)}:{function.name}"


def test_one_file_makes_files_and_folders() -> None:
    found = {place for path in PYTHON for place in makers(path) if not place.startswith(f"{HELPER}:")}
    assert found == set(ALLOWED), "use make_folder, write_file or ensure_file of module_utils/_files.py"
    assert list(makers(ROOT / HELPER)), "the search finds nothing"


def tasks(value: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every use of a module that writes: the task's name, the module, its options."""
    if isinstance(value, list):
        for each in value:
            yield from tasks(each)
    elif isinstance(value, dict):
        for key, options in value.items():
            module = str(key).rpartition(".")[2]
            if str(key).startswith("ansible.") and module in WRITERS and isinstance(options, dict):
                yield str(value.get("name")), module, options
            yield from tasks(options)


def test_tasks_name_the_mode_of_what_they_write() -> None:
    files = [*(ROOT / "roles").glob("*/*/*.yml"), *(ROOT / "playbooks").rglob("*.yml")]
    found = [each for path in files for each in tasks(yaml.safe_load(path.read_text()))]
    missing = {
        name for name, _module, options in found if options.get("state") != "absent" and not set(MODES) & set(options)
    }
    assert len(found) > 20 and missing == set(WITHOUT_MODE)
