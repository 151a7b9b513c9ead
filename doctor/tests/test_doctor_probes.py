"""What is tried on the cards: with probes that crash, hang and answer, and on the simulated device."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from node_files import Machine

import gaudi3_doctor as doctor
from gaudi3_doctor import card_sections, children, consented
from gaudi3_doctor.host import Host, Options, User, content, create, inherited
from gaudi3_doctor.probes import base, single

# A Python that answers for probes as their program does: some crash, hang, or say nothing.
PROBES = """#!{python}
import json, os, signal, sys, time
if "-m" not in sys.argv: sys.exit(1)
_, _, _, kind, out, names, settings = sys.argv
with open(out, "a") as file:
    def say(**found):
        file.write(json.dumps(found) + "\\n"); file.flush()
    say(begin="start")
    if os.environ.get("NO_CARD"):
        say(name="start", error="RuntimeError: synStatus=8 [Device not found]"); sys.exit(1)
    say(name="start", data={{"cards": [], "variables": {{"HLS_MODULE_ID": os.environ.get("RANK", "0")}}}})
    file.write("not for this\\n")
    for name in json.loads(names):
        say(begin=name)
        if name == "meeting":
            if os.environ["RANK"] == "1": sys.exit(1)
            time.sleep(60)
        if name == "copies": os.kill(os.getpid(), signal.SIGKILL)
        if name == "types": time.sleep(60)
        if name == "memory": say(name=name, error="RuntimeError: no memory"); continue
        data = {{"identity": {{"device_count": 2}}}} if name == "numbers" else {{"wrong": 0}}
        say(name=name, seconds=0.1, data=data)
    say(done=True)
"""


@pytest.fixture
def probing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Options:
    monkeypatch.setattr(children.Bench, "patience", 1.0)
    monkeypatch.setattr(children, "login_variables", lambda host, options: {})
    python = machine.program("python-with-torch", PROBES.format(python=sys.executable))
    return Options(cards=True, pythons=("/nowhere", str(python.name)))


def test_what_a_probe_costs_is_that_probe(machine: Machine, probing: Options) -> None:
    with children.bench(machine.host, probing) as place:
        answers = place.single(("numbers", "copies", "types", "memory", "experts"))
        folder = place.folder
    assert {name: answer.get("error", "") for name, answer in answers.items()} == {
        "numbers": "",
        "copies": "the process was ended by signal 9",
        "types": "the process gave no answer in time",
        "memory": "RuntimeError: no memory",
        "experts": "",
    }
    assert not Path(folder).exists()


def test_without_a_card_every_probe_says_why(
    machine: Machine, probing: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_CARD", "1")
    with children.bench(machine.host, probing) as place:
        answers = place.single(("numbers", "copies"))
    assert {answer["error"] for answer in answers.values()} == {"RuntimeError: synStatus=8 [Device not found]"}


def test_without_a_peer_the_others_of_a_group_are_not_waited_for_as_long(
    machine: Machine, probing: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children.Bench, "patience", 30.0)
    monkeypatch.setattr(children, "_WITHOUT_A_PEER", 0.2)
    started = time.monotonic()
    with children.bench(machine.host, probing) as place:
        ranks = place.group(("meeting",), 2)
    assert [child.ending() for child in ranks] == ["gave no answer in time", "ended with exit code 1"]
    assert time.monotonic() - started < 20
    odd = card_sections._failures(ranks, ("meeting",))
    assert odd == [
        "rank 0 fails at meeting: the process gave no answer in time",
        "rank 1 fails at meeting: the process ended with exit code 1",
    ]


def test_who_is_not_waited_for_may_first_end_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_GRACE", 1.0)
    orderly = "trap 'echo in order; exit 0' TERM; echo up; sleep 60 & wait"
    deaf = "trap '' TERM; echo up; while :; do sleep 1; done"
    started = []
    for number, script in enumerate((orderly, deaf)):
        log = tmp_path / str(number)
        with log.open("wb") as file:
            process = subprocess.Popen(["/bin/sh", "-c", script], stdout=file, start_new_session=True)
        started.append(children.Child(process, "/nowhere", str(log)))
    while not all(child.last_words() for child in started):
        time.sleep(0.01)
    children.end(started)
    assert [child.process.returncode for child in started] == [0, -signal.SIGKILL]
    assert [child.last_words() for child in started] == ["up\nin order\n", "up\n"]


def test_a_probe_ends_with_the_functions_that_give_its_card_up() -> None:
    program = (
        "import atexit, threading\n"
        "from gaudi3_doctor.probes import base\n"
        "base.LEAVE = 0.2\n"
        "atexit.register(threading.Event().wait)\n"  # as a card that waits for its peer
        "atexit.register(print, 'given up')\n"
        "base.leave(3)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (3, "given up\n")


@pytest.mark.parametrize(
    ("refusals", "patience", "outcome"),
    [
        (0, 9.0, {"count": 0}),
        (2, 9.0, {"count": 2, "last": "synStatus=26 [Generic failure] Device acquire failed."}),
        (2, 0.0, "Device acquire failed"),
    ],
)
def test_a_card_that_resets_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, refusals: int, patience: float, outcome: Any
) -> None:
    monkeypatch.setattr(base, "PAUSE", 0.0)
    monkeypatch.setattr(base, "PATIENCE", patience)
    left = [RuntimeError("synStatus=26 [Generic failure] Device acquire failed.")] * refusals

    def init() -> None:
        if left:
            raise left.pop()

    if isinstance(outcome, str):
        with pytest.raises(RuntimeError, match=outcome):
            base.acquired(init)
    else:
        assert base.acquired(init) == outcome


def test_what_is_no_refusal_is_not_tried_again() -> None:
    asked = []

    def init() -> None:
        asked.append(1)
        raise RuntimeError("Graph compile failed")

    with pytest.raises(RuntimeError, match="Graph compile failed"):
        base.acquired(init)
    assert asked == [1]


def test_a_user_gets_nothing_of_roots_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "environ", {"CLOUD_KEY": "abc123", "TZ": "UTC", "HABANA_LOGS": "/root/logs"})
    assert inherited(User("trainer", 990, 990, ())) == {"TZ": "UTC"}
    assert inherited(None) == inherited(User("root", 0, 0, ())) == dict(os.environ)


def test_no_link_in_a_users_folder_is_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("abc123")
    link = tmp_path / "1.log"
    link.symlink_to(secret)
    assert content(str(link)) == b"" and content(str(tmp_path)) == b"" and content(str(secret), 3) == b"123"
    with pytest.raises(FileExistsError):
        create(str(link))
    assert secret.read_text() == "abc123"


def test_the_sections_of_the_cards(machine: Machine, probing: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_sections, "SINGLE", ("numbers", "first_step", "memory"))

    def broken(place: Any, count: int) -> Any:
        raise KeyError("of what")

    steps = {step.key: step for step in card_sections.STEPS}
    steps["sharded"] = consented.Step("sharded", broken, 2)
    monkeypatch.setattr(card_sections, "STEPS", tuple(steps.values()))
    found = {key: result for key, result, _ in card_sections.on_cards(machine.host, probing)}
    assert found["numbers"].odd == [] and found["memory"].odd == ["it fails: RuntimeError: no memory"]
    assert found["first_step"].data["trainer"] == {"missing": "that Python has no gaudi3_scale"}
    assert [each["start"]["data"]["variables"]["HLS_MODULE_ID"] for each in found["collective"].data["ranks"]] == [
        "0",
        "1",
    ]
    assert found["elastic"].odd[0].startswith("torchrun with a restart fails: exit code 1")
    assert found["sharded"].data == {"error": "KeyError: 'of what'"}
    assert found["killed_holder"].not_tried.endswith("so it needs --consent kill-holder (doctor_consent)")


def test_cards_in_use_are_left_alone(machine: Machine, probing: Options) -> None:
    machine.write("/proc/4711/comm", "python3\n")
    (machine.write("/proc/4711/fd/5", "")).unlink()
    Path(str(machine.root) + "/proc/4711/fd/5").symlink_to("/dev/accel/accel1")
    found = [result.not_tried for _, result, _ in card_sections.on_cards(machine.host, probing)]
    assert set(found) == {"cards are in use (/dev/accel/accel1 by 4711 (python3)): stop what uses them"}


@pytest.mark.parametrize(("consent", "tried"), [((), False), (("translated-iommu",), True)])
def test_cards_that_the_iommu_translates_are_taken_only_with_consent(
    machine: Machine, probing: Options, consent: tuple[str, ...], tried: bool
) -> None:
    machine.write("/sys/kernel/iommu_groups/1/type", "DMA-FQ\n")
    why = card_sections._obstacle(machine.host, Options(cards=True, pythons=probing.pythons, consent=consent))
    assert (why == "") is tried
    assert tried or why.startswith("the IOMMU translates addresses of 1 cards, and taking such a card has brought")


def test_what_breaks_all_probes_is_said_of_every_section_that_is_left(
    machine: Machine, probing: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, names: Any) -> Any:
        raise ValueError("of what")

    monkeypatch.setattr(children.Bench, "single", broken)
    found = {key: result.data for key, result, _ in card_sections.on_cards(machine.host, probing)}
    assert list(found) == [section.key for section in doctor.SECTIONS if section.on_cards]
    assert all(data == {"error": "ValueError: of what"} for data in found.values())


@pytest.mark.parametrize("module", ["0", "1"])
def test_a_rank_with_another_card_than_it_asked_for_is_odd(machine: Machine, probing: Options, module: str) -> None:
    class Place:
        def group(self, names: Any, size: int) -> list[Any]:
            child = children.Child(None, "", "", done=True)  # type: ignore[arg-type]
            identity = {"variables": {"HLS_MODULE_ID": "0"}, "cards": [{"module_id": module}]}
            child.answers = {"start": {"data": identity}, "collective": {"data": {"wrong": 0}}}
            return [child]

    odd = card_sections._collective(Place(), 1).odd  # type: ignore[arg-type]
    assert odd == ([] if module == "0" else ["rank 0 asked for module 0 and has the card of module 1"])


def test_every_consent_is_that_of_a_section_or_of_the_cards() -> None:
    assert [*(each.consent for each in consented.CONSENTED), card_sections.TRANSLATED] == list(doctor.CONSENTS)
    needed = {section.key: section.consent for section in doctor.SECTIONS if section.consent}
    assert needed == {each.key: each.consent for each in consented.CONSENTED}
    on_cards = {section.key for section in doctor.SECTIONS if section.on_cards}
    assert on_cards == {*card_sections.SINGLE, *(step.key for step in card_sections.STEPS)}


DEVICE = Path(__file__).resolve().parents[2] / ".cache" / "hpu"


@pytest.mark.skipif(
    not DEVICE.is_dir(), reason="THE SIMULATED hpu DEVICE IS NOT BUILT: run `make trainer-test`, which builds it first"
)
def test_the_probes_compute_on_the_simulated_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DEVICE))
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_DEVICES", "2")
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_CARDS", str(tmp_path))
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_RESET", "3600")  # the next process would wait in vain
    monkeypatch.setattr(children, "login_variables", lambda host, options: {})
    names = ("numbers", "first_step", "copies", "types", "attention", "memory", "experts", "compiled")
    with children.bench(Host(), Options(quick=True, pythons=(sys.executable,))) as place:
        answers = place.single(names)
        ranks = place.group(("collective", "sharded"), 2)
        restarted = card_sections._elastic(place, 2)
    found = {name: answer["data"] for name, answer in answers.items()}
    assert list(found) == list(names)
    assert found["numbers"]["odd"] == [] and found["numbers"]["identity"]["device_count"] == 2
    assert "simulat" in found["numbers"]["identity"]["properties"]
    assert found["first_step"]["odd"] == [] and found["first_step"]["transformers"]["finite"]
    assert found["types"]["autocast"]["matmul"]["torch.float32"] == "torch.bfloat16"
    assert {"causal", "bool_mask", "added_mask"} < set(found["attention"])
    batches = found["memory"]["batches"]
    activation, weight = 8 * 64 * 4, 64 * 64 * 4  # bytes of a sample, of the second layer
    assert {batch: each["kept_for_backward"] for batch, each in batches.items()} == {
        batch: 4 * int(batch) * activation + weight for batch in ("8", "32", "128")
    }
    assert all(each["peak_over_start"] >= each["kept_for_backward"] for each in batches.values())
    assert found["experts"]["layer"]["finite"] and found["compiled"]["graphs"]["unique_graphs"] == 1
    identities = [child.answers["start"]["data"] for child in ranks]
    assert [each["refusals"] for each in (found["numbers"]["identity"], *identities)] == [{"count": 0}] * 3
    assert [each["variables"]["HLS_MODULE_ID"] for each in identities] == ["0", "1"]
    assert [child.answers["collective"]["data"]["wrong"] for child in ranks] == [0, 0]
    assert [child.answers["sharded"]["data"]["largest_difference"] < 0.01 for child in ranks] == [True, True]
    assert [child.process.returncode for child in ranks] == [0, 0]
    assert restarted.odd == []
    assert restarted.data["ranks"] == [{"rank": rank, "starts": 2, "sum": 3.0} for rank in (0, 1)]


def test_the_worker_that_fails_on_purpose_does_so_once_the_others_have_started(tmp_path: Path) -> None:
    last = subprocess.Popen(
        [sys.executable, "-m", "gaudi3_doctor.probes.elastic", str(tmp_path)],
        env={**os.environ, "RANK": "1", "WORLD_SIZE": "2"},
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "starts-1").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(subprocess.TimeoutExpired):
            last.wait(2)  # of a slow start of rank 0, which torchrun would end before it could be counted
        (tmp_path / "starts-0").write_text("1")
        assert last.wait(60) == 3
    finally:
        last.kill()


@pytest.mark.skipif(not DEVICE.is_dir(), reason="the simulated hpu device is not built")
def test_a_killed_holder_keeps_its_card_from_others_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DEVICE))
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_DEVICES", "1")
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_CARDS", str(tmp_path))
    monkeypatch.setenv("GAUDI3_HPU_SIMULATOR_RESET", "3600")
    monkeypatch.setattr(children, "login_variables", lambda host, options: {})
    with children.bench(Host(), Options(quick=True, pythons=(sys.executable,))) as place:
        found = consented.killed_holder(place, 1)
    assert found.odd[0].startswith("a card could not be acquired 0.")
    assert found.odd[1:] == ["the card was not acquired again in any of the tries"]
    assert ["Device acquire failed" in each["data"]["failure"] for each in found.data["tries"]] == [True, True]


class Group:
    """A place whose groups answer what they are told."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.options = Options(quick=True)
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    def group(self, names: Any, size: int, patience: float | None = None) -> list[Any]:
        self.asked.append((*names, size, patience))
        process = SimpleNamespace(poll=lambda: -9)
        return [
            children.Child(process, "", "/nowhere", {names[0]: answer} if answer else {})  # type: ignore[arg-type]
            for answer in (self.answers * size)[:size]
        ]


def test_what_a_lost_peer_leaves_is_told() -> None:
    place = Group([{"data": {"said": "RuntimeError: timed out", "after_seconds": 3.0}}, {}])
    found = consented.lost_peer(place, 2)  # type: ignore[arg-type]
    assert place.asked == [("killed_peer", 2, 30.0), ("stopped_peer", 2, 30.0)] and found.odd == []
    assert found.data["stopped_peer"]["data"]["said"] == "RuntimeError: timed out"
    silent = consented.lost_peer(Group([{}]), 2)  # type: ignore[arg-type]
    assert silent.odd == [f"{name}: the process was ended by signal 9" for name in ("killed_peer", "stopped_peer")]


@pytest.mark.parametrize(("count", "sizes"), [(8, [3, 5, 6, 7]), (4, [3])])
def test_parts_of_a_node_are_tried_up_to_its_cards(count: int, sizes: list[int]) -> None:
    good = Group([{"data": {"wrong": 0}}])
    found = consented.part_of_node(good, count)  # type: ignore[arg-type]
    assert [size for _, size, _ in good.asked] == sizes and found.odd == []
    bad = consented.part_of_node(Group([{"data": {"wrong": 0}}, {"data": {"wrong": 4}}]), count)  # type: ignore[arg-type]
    assert bad.odd == [f"a collective over {size} cards fails on {size // 2} of them" for size in sizes]


def test_a_wrong_product_is_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, with one element spoiled as a translated IOMMU domain spoils them."""
    import torch

    card = base.Card(torch, None, None, torch.device("cpu"), 1 / 256)
    assert single.numbers(card)["odd"] == []
    select = torch.index_select
    calls = []

    def spoiled(*arguments: Any) -> torch.Tensor:
        calls.append(1)
        result = select(*arguments)
        if len(calls) == 2:
            result[7, 3] += 1
        return result

    monkeypatch.setattr(torch, "index_select", spoiled)
    assert single.numbers(card)["odd"] == ["the gather has 1 wrong elements of 262144 in run 2"]
