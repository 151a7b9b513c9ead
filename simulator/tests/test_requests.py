"""A bad request ends with exit code 2 and one sentence, which names what was probably meant; nothing is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gaudi3_simulator import cli, parser, podman, suggestions
from gaudi3_simulator.home import Cluster, Node, load_cluster
from gaudi3_simulator.node import faults

#: (words of the command line, words of the sentence)
REQUESTS = (
    ("", "the following arguments are required: command"),
    ("sttus", "invalid choice: 'sttus'", "Did you mean 'status'?"),
    ("up --nodes 0", "--nodes was 0: give 1 to 64."),
    ("up --nodes many", "argument --nodes: invalid int value: 'many'"),
    ("up --cards 9", "--cards was 9: a Gaudi 3 node has 1 to 8 cards."),
    ("up --node", "argument --nodes: expected one argument"),
    ("up --nodez 2", "unrecognized arguments: --nodez 2"),
    ("up --profile clutser", "--profile was clutser: give one of cluster, single, vm. Did you mean 'cluster'?"),
    ("up --profile laptop", "--profile was laptop: give one of cluster, single, vm."),
    ("up --board HL325L", "--board was HL325L: give one of HL-325L, HL-225. Did you mean 'HL-325L'?"),
    ("up --system debian-21", "invalid choice: 'debian-21'"),
    ("up --present-as ubunto-24.04", "invalid choice: 'ubunto-24.04'", "Did you mean 'ubuntu-24.04'?"),
    ("up --kernel noble", "--kernel was 'noble': give a release as 'uname -r' prints it, as in 6.8.0-51-generic"),
    ("up --like here.json --kernel 6.8.0-51-generic", "--like was given with --kernel: give one of them."),
    ("up --subnet 10.0.0", "--subnet was 10.0.0: give a network"),
    ("up --name ../other", "--name was '../other': give letters, digits"),
    ("up --like none.json", "--like was none.json, which cannot be read: give a file."),
    ("up --like here.json", "--like has no cluster_endpoints"),
    ("up --authorized-key key.pub", "--authorized-key was given without --like: give both, or neither."),
    ("up --stage drivres", "There is no stage called drivres (saved: none)"),
    ("up --stage drivers --board HL-225", "--stage was given with --board: give one of them."),
    ("up --twins none", "There is no folder none: make twins with 'gaudi3-simulator from-inventory'."),
    ("up --twins .", "is no twin: make one with 'gaudi3-simulator from-report'."),
    ("up --twins none --board HL-225", "--twins was given with --board: give one of them."),
    ("up --twins none --authorized-key key.pub", "--twins was given with --authorized-key: give one of them."),
    ("up --twins none --stage drivers", "--stage was given with --twins: give one of them."),
    ("from-report none.json --into twin", "The report none.json cannot be read"),
    ("from-report here.json --into twin", "The report here.json is no doctor's report"),
    ("from-inventory none --reports none --into twins", "There is no inventory none: give a file or a folder"),
    ("from-inventory here.json --into twins", "the following arguments are required: --reports"),
    ("up -- uptime", "up takes no command behind --: only ssh does."),
    ("down --name /", "--name was '/': give letters"),
    ("save drivers", "There is no cluster called absent"),
    ("bmc", "There is no cluster called absent"),
    ("bmc --name ../demo", "--name was '../demo': give letters"),
    ("save --name demo Drivers", "The stage's name was 'Drivers': use lower-case letters, digits and hyphens."),
    ("stages --remove drivers", "There is no stage called drivers"),
    ("restart gaudi-1", "There is no cluster called absent: bring it up with"),
    ("restart --name demo gadi-1", "Cluster demo has no node gadi-1: it has gaudi-1. Did you mean 'gaudi-1'?"),
    ("restart --name demo gaudi-9", "Cluster demo has no node gaudi-9: it has gaudi-1."),
    ("off --name demo", "the following arguments are required: node"),
    ("off --name demo x", "Cluster demo has no node x: it has gaudi-1."),
    ("ssh --name demo gaudi1", "Cluster demo has no node gaudi1: it has gaudi-1. Did you mean 'gaudi-1'?"),
    ("open grafanna", "invalid choice: 'grafanna'", "Did you mean 'grafana'?"),
    ("open --name demo grafana", "Cluster demo has no monitoring host"),
    ("fault port-down", "port-down is a kind of fault, and the node comes first: fault NODE port-down."),
    ("fault gaudi-1 --clear", "--clear was given without a kind of fault"),
    ("fault gaudi-1 portdown", "portdown is no kind of fault: choose one of ", "Did you mean 'port-down'?"),
    ("fault gaudi-1 hccl-hang", "hccl-hang cannot be simulated: "),
    ("fault gaudi-1 port-down", "There is no cluster called absent"),
    ("fault --name demo gaudi-1 port-down --card 99", "card 99 does not exist: this node has cards 0 to 3."),
    ("fault --name demo gaudi-1 port-down --port 99", "port 99 does not exist: a card has ports 0 to "),
    ("fault --name demo gaudi-1 card-missing --port 1", "card-missing concerns a whole card: leave out --port."),
    ("fault --name demo gaudi-1 hl-smi-hang --card 1", "hl-smi-hang concerns the whole node"),
    ("fault --name demo gaudi-1 port-down --count 3", "3 is no count of port-down"),
    ("fault --name demo gaudi-1 port-down --event x", "x is no event of port-down"),
    ("fault --name demo gaudi-1 port-down --after soon", "argument --after: invalid float value: 'soon'"),
    ("fault --name demo gaudi-1 port-down --after -3", "--after was -3: give seconds from now on, 0 or more."),
    ("fault --name demo gaudi-1 port-down --share 100", "--share was 100: give the percentage of the time"),
    ("fault --name demo gaudi-1 module-empty --at-boot", "module-empty is a fault of one moment: leave out "),
    ("fault --name demo gaudi-9 port-down", "Cluster demo has no node gaudi-9: it has gaudi-1."),
    ("repository --fault truncated-packge", "--fault was truncated-packge: give", "Did you mean 'truncated-package'?"),
    ("repository --releases 1.2.3-4", "The repository was asked for release 1.2.3-4, which is not published"),
    ("repository --shelf pytroch", "--shelf was pytroch: give one of pytorch, image. Did you mean 'pytorch'?"),
    ("repository --releases=", "--releases was empty: give one release or several, with commas between them."),
    ("completion", "completion was given without a shell: give one of bash, zsh, fish."),
    ("completion ksh", "invalid choice: 'ksh'"),
)


@pytest.mark.parametrize("line", REQUESTS, ids=[line[0] for line in REQUESTS])
def test_a_bad_request_ends_with_2(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GAUDI3_SIMULATOR_CLUSTER", "absent")
    monkeypatch.setattr(podman.Podman, "run", lambda *_arguments, **_options: pytest.fail("podman was started"))
    monkeypatch.setattr(cli.cluster, "preflight", lambda: None)

    def bring_up(name: str, wanted: Callable[[Cluster | None], Cluster], _log: object) -> None:
        wanted(load_cluster(name))
        pytest.fail("a cluster was brought up")

    monkeypatch.setattr(cli.cluster, "bring_up", bring_up)
    monkeypatch.chdir(tmp_path)
    Path("here.json").write_text("{}")
    Path("key.pub").write_text("")
    Cluster("demo", "10.1.0.0/24", [Node("gaudi-1", "10.1.0.11", 4)]).save()
    given, sentences = line[0].split(), line[1:]
    try:
        code = cli.main(given)
    except SystemExit as end:
        code = int(str(end.code))
    said = capsys.readouterr()
    assert code == 2, said
    assert said.out == ""
    assert said.err.startswith("gaudi3-simulator: ") and said.err.count("\n") == 1
    assert [each for each in sentences if each not in said.err] == [], said.err
    assert ("Did you mean" in said.err) == any("Did you mean" in each for each in sentences)


def test_every_command_has_a_bad_request() -> None:
    tried = {line[0].split()[0] for line in REQUESTS if line[0]}
    actions = parser.build_parser()._subparsers
    assert actions is not None
    commands = set(actions._group_actions[0].choices or {})
    assert commands - tried == {"prepare", "clean", "status"}  # which take no value that could be wrong


def test_a_misspelt_fault_is_recognised() -> None:
    for kind in faults.REGISTRY:
        if len(kind) > 6:
            assert suggestions.meant(f"{kind[:2]}{kind[3:]}", faults.REGISTRY) == f" Did you mean '{kind}'?"
