"""gaudi_node_look: each part answers as its module does, fails alone, and changes nothing."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import look
from ansible_collections.gaudi3.scale.plugins.modules import (
    gaudi_claim,
    gaudi_driver,
    gaudi_fabric,
    gaudi_firewall,
    gaudi_node_look,
    gaudi_ports,
    gaudi_pytorch,
    gaudi_service,
    gaudi_train_node_info,
    kernel_holds,
    kernel_settings,
    synapseai_packages,
    trainer_install,
)

Run = Callable[..., dict[str, Any]]
MODULES = (
    gaudi_claim, gaudi_driver, gaudi_fabric, gaudi_firewall, gaudi_ports, gaudi_pytorch, gaudi_service,
    gaudi_train_node_info, kernel_holds, kernel_settings, synapseai_packages, trainer_install,
)  # fmt: skip
SECRET = "https://me:pass-phrase@pypi.example/simple"


def part(module: str, called: str = "it", tolerated: bool = False, **arguments: Any) -> dict[str, Any]:
    return {"name": called, "module": module, "arguments": arguments, "tolerated": tolerated}


@pytest.fixture
def fabric(tmp_path: Path) -> dict[str, Any]:
    return {
        "kind": "none", "environment_path": str(tmp_path / "fabric.env"), "gaudinet_path": str(tmp_path / "net.json"),
        "sysfs_root": str(tmp_path / "sys"),
    }  # fmt: skip


def test_every_module_can_be_asked_that_keeps_its_arguments_apart() -> None:
    names = {module.__name__.rpartition(".")[2] for module in MODULES}
    alone = {"account", "addresses", "contents", "files", "interpreter", "listener", "mirror"} | {
        "package",
        "page",
        "port",
        "service_page",
    }
    assert names | alone == set(look.TASKS)


def test_a_part_answers_as_its_module_does_in_check_mode(
    fabric: dict[str, Any], tmp_path: Path, run_module: Run
) -> None:
    alone = run_module(gaudi_fabric, check=True, **fabric)
    found = run_module(gaudi_node_look, parts=[part("gaudi_fabric", **fabric)])
    alone.pop("invocation")
    assert found["found"]["it"] == alone and alone["changed"] is True
    assert found["changed"] is False and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        (gaudi_driver, "gaudi_driver", {}),
        (gaudi_driver, "gaudi_driver", {"release": "one"}),
        (gaudi_fabric, "gaudi_fabric", {"kind": "carrier"}),
        (gaudi_fabric, "gaudi_fabric", {"kinds": "none"}),
        (gaudi_service, "gaudi_service", {"name": "a.service", "systemctl_executable": "/nowhere/systemctl"}),
        (gaudi_service, "gaudi_service", {"name": "a.service", "systemctl_executable": "false"}),
        (gaudi_service, "gaudi_service", {"name": "a.service", "systemctl_executable": "true"}),
        (gaudi_firewall, "gaudi_firewall", {"open_ports": ["none"], "nft_executable": "/nowhere/nft"}),
    ],
)
def test_a_part_fails_with_the_words_of_its_module(
    module: Any, name: str, arguments: dict[str, Any], run_module: Run
) -> None:
    alone = run_module(module, check=True, **arguments)
    assert alone["failed"], alone
    found = run_module(gaudi_node_look, parts=[part(name, **arguments)])
    words = alone["msg"] if "Unsupported parameters" not in alone["msg"] else found["msg"]
    assert found["failed"] and found["msg"] == words and found["found"]["it"]["msg"] == words


def test_what_is_not_expected_ends_its_part_alone(
    fabric: dict[str, Any], run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_module: Any) -> dict[str, Any]:
        raise OSError("the disk is gone")

    monkeypatch.setitem(look.TASKS, "gaudi_ports", look.Task({}, broken))
    parts = [part("gaudi_ports", "ports"), part("gaudi_fabric", "fabric", **fabric)]
    found = run_module(gaudi_node_look, parts=parts)
    assert found["msg"] == "OSError: the disk is gone"
    assert found["found"]["fabric"]["changed"] and "Traceback" in found["found"]["ports"]["exception"]


def test_every_failure_that_is_not_tolerated_is_told_once(fabric: dict[str, Any], run_module: Run) -> None:
    bad = {**fabric, "mode": "l3", "nics": []}
    parts = [
        part("gaudi_driver", "driver", True, release="one"),
        part("gaudi_fabric", "fabric", **fabric),
        part("gaudi_service", "service"),
        part("gaudi_fabric", "other", **{**bad, "kind": "carrier"}),
        part("gaudi_service", "again"),
    ]
    found = run_module(gaudi_node_look, parts=parts)
    failed = [name for name, answer in found["found"].items() if answer.get("failed")]
    assert failed == ["driver", "service", "other", "again"]
    told = ["missing required arguments: name", found["found"]["other"]["msg"]]
    assert found["failed"] and found["msg"].splitlines() == told
    tolerated = run_module(gaudi_node_look, parts=parts[:2])
    assert "failed" not in tolerated and tolerated["found"]["driver"]["failed"]


def test_a_part_has_its_own_environment_of_commands(
    tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt's and dpkg's is not that of the next part."""

    def says(module: Any) -> dict[str, Any]:
        module.run_command_environ_update = {"SPOKEN": module.params["word"]} if module.params["word"] else {}
        _code, output, _errors = module.run_command(["sh", "-c", "echo ${SPOKEN:-none}"], check_rc=True)
        return {"changed": False, "said": output.strip(), "check": module.check_mode, "folder": module.tmpdir}

    monkeypatch.setitem(look.TASKS, "files", look.Task({"word": {"type": "str", "default": ""}}, says))
    found = run_module(gaudi_node_look, parts=[part("files", "one", word="English"), part("files", "two")])["found"]
    assert (found["one"]["said"], found["two"]["said"]) == ("English", "none")
    assert found["one"]["check"] is True and found["one"]["folder"]


def test_a_secret_is_shown_nowhere(
    run_module: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(AnsibleModule, "log", lambda _module, msg, log_args=None: logged.append(f"{msg} {log_args}"))
    wanted = {"release": "1.23.0-695", "index_url": SECRET, "root": str(tmp_path), "sha256": "none"}
    found = run_module(gaudi_node_look, parts=[part("gaudi_pytorch", **wanted)], secrets=[SECRET])
    assert found["failed"] and logged and "pytorch" in str(logged)
    assert "pass-phrase" not in str(found) + str(logged) + caplog.text
    unnamed = run_module(gaudi_node_look, parts=[part("gaudi_pytorch", **wanted)])
    assert "pass-phrase" not in str(unnamed), "the module's own specification says so too"


@pytest.fixture
def page() -> Iterator[int]:
    """The port of a page whose path is its status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(self.path[1:]))
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_port_and_a_page(page: int, run_module: Run) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        parts = [
            part("port", "open", host="127.0.0.1", port=page),
            part("port", "closed", True, host="127.0.0.1", port=closed.getsockname()[1]),
            part("page", "well", url=f"http://127.0.0.1:{page}/200"),
            part("page", "busy", url=f"http://127.0.0.1:{page}/429"),
            part("page", "ill", url=f"http://127.0.0.1:{page}/503"),
            part("page", "none", True, url=f"http://127.0.0.1:{closed.getsockname()[1]}/", timeout=2),
        ]
        found = run_module(gaudi_node_look, parts=parts)["found"]
    assert found["open"]["state"] == "started" and found["closed"]["failed"]
    assert [found[name]["status"] for name in ("well", "busy", "ill", "none")] == [200, 429, 503, -1]
    assert found["none"]["failed"]


def test_files_with_their_groups(tmp_path: Path, run_module: Run) -> None:
    for name, mode in (("accel0", 0o660), ("accel1", 0o606), ("other", 0o644)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    paths = [str(tmp_path / "other"), str(tmp_path / "accel*"), str(tmp_path / "missing")]
    files = run_module(gaudi_node_look, parts=[part("files", paths=paths)])["found"]["it"]["files"]
    assert [Path(file["path"]).name for file in files] == ["accel0", "accel1", "other"]
    assert [(file["wgrp"], file["woth"]) for file in files] == [(True, False), (False, True), (False, False)]
    assert {file["gr_name"] for file in files} == {(tmp_path / "other").group()}
