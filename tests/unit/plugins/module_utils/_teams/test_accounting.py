"""The commands that bring Slurm's accounts to the file, and none where all is right."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.accounting import (
    Change,
    associations,
    change,
    levels,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.declared import Quota, TeamEntry

VISION = TeamEntry("vision", ("anna", "ben"), Quota(16, 4, 5000), 10, "vision")
SPEECH = TeamEntry("speech", ("carla",), Quota(8), 0, "speech")
NOTHING = "hall-2|root||normal|\nhall-2|root|root|normal|\nhall-3|vision||normal|\n"
ACCOUNTS = (
    "hall-2|vision||team-vision|team-vision\n"
    "hall-2|vision|anna|team-vision|team-vision\n"
    "hall-2|vision|ben|team-vision|team-vision\n"
)
QOS = "normal|0||||\nteam-vision|10|cpu=64,gres/gpu=16|4|gres/gpu=300000|NoDecay,DenyOnLimit\n"


def _change(teams: list[TeamEntry], rows: str, qos: str, remove: bool = False) -> Change:
    return change(teams, associations(rows), levels(qos, "gres/gpu"), "hall-2", remove=remove)


def _said(found: Change) -> list[str]:
    return [" ".join(command).replace("sacctmgr -i ", "") for command in found.commands]


def test_a_new_team() -> None:
    found = _change([VISION], NOTHING, "normal|0||||\n")
    assert {command[:2] for command in found.commands} == {("sacctmgr", "-i")}
    assert _said(found) == [
        "add qos team-vision",
        "modify qos where name=team-vision set priority=10 grptres=gres/gpu=16 grpjobs=4 grptresmins=gres/gpu=300000 "
        "flags=DenyOnLimit",
        "add account vision cluster=hall-2 description=team-vision",
        "modify account where name=vision cluster=hall-2 set qos=team-vision defaultqos=team-vision",
        "add user name=anna account=vision cluster=hall-2",
        "add user name=ben account=vision cluster=hall-2",
    ]


def test_nothing_where_all_is_right() -> None:
    assert _change([VISION], NOTHING + ACCOUNTS, QOS) == Change((), ())


def test_nodes_are_a_line_of_slurm_conf() -> None:
    there = VISION._replace(nodes=("gaudi-1", "gaudi-2"))
    for remove in (False, True):
        assert _change([there], NOTHING + ACCOUNTS, QOS, remove=remove) == Change(
            (),
            (
                "Team vision has nodes, which are a line of slurm.conf: PartitionName=vision Nodes=gaudi-1,gaudi-2 "
                "AllowAccounts=vision",
            ),
        )


def test_teams_that_share_a_partition_are_one_line() -> None:
    own = VISION._replace(partition="night")
    assert _change([own], NOTHING + ACCOUNTS, QOS).notes == (
        "Team vision has the partition night, which is a line of slurm.conf: PartitionName=night Nodes=ALL "
        "AllowAccounts=vision",
    )
    both = [each._replace(nodes=("gaudi-1",), partition="night") for each in (VISION, VISION._replace(name="nlp"))]
    assert _change(both, NOTHING + ACCOUNTS, QOS).notes == (
        "Teams vision and nlp have the partition night, which is a line of slurm.conf: PartitionName=night "
        "Nodes=gaudi-1 AllowAccounts=vision,nlp",
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gpu=16|4", "gpu=8|4", "modify qos where name=team-vision set grptres=gres/gpu=16"),
        ("gpu=16|4", "gpu=16|", "modify qos where name=team-vision set grpjobs=4"),
        ("gpu=300000", "gpu=5000", "modify qos where name=team-vision set grptresmins=gres/gpu=300000"),
        ("vision|10", "vision|", "modify qos where name=team-vision set priority=10"),
        ("NoDecay,DenyOnLimit", "NoDecay", "modify qos where name=team-vision set flags+=DenyOnLimit"),
        (
            "ben|team-vision|team-vision",
            "ben|normal,team-vision|team-vision",
            "modify user where name=ben account=vision cluster=hall-2 set qos=team-vision defaultqos=team-vision",
        ),
        (
            "vision||team-vision|team-vision",
            "vision||team-vision|",
            "modify account where name=vision cluster=hall-2 set qos=team-vision defaultqos=team-vision",
        ),
        ("hall-2|vision|ben|team-vision|team-vision\n", "", "add user name=ben account=vision cluster=hall-2"),
    ],
)
def test_one_difference_has_one_command(old: str, new: str, said: str) -> None:
    rows, qos = ACCOUNTS.replace(old, new), QOS.replace(old, new)
    assert (rows, qos) != (ACCOUNTS, QOS)
    assert _said(_change([VISION], NOTHING + rows, qos)) == [said]


def test_a_limit_that_the_file_has_no_more_is_lifted() -> None:
    team = VISION._replace(quota=Quota())
    assert _said(_change([team], NOTHING + ACCOUNTS, QOS)) == [
        "modify qos where name=team-vision set grptres=gres/gpu=-1 grpjobs=-1 grptresmins=gres/gpu=-1"
    ]


def test_a_limit_of_none_is_a_limit() -> None:
    team = VISION._replace(quota=Quota(0, 4, 5000))
    assert _said(_change([team], NOTHING + ACCOUNTS, QOS)) == [
        "modify qos where name=team-vision set grptres=gres/gpu=0"
    ]


def test_a_user_moves_to_another_team() -> None:
    teams = [VISION._replace(users=("anna",)), SPEECH._replace(users=("carla", "ben"))]
    rows = NOTHING + ACCOUNTS + "hall-2|speech||team-speech|team-speech\nhall-2|speech|carla|team-speech|team-speech\n"
    qos = QOS + "team-speech|0|gres/gpu=8|||DenyOnLimit\n"
    moved = [
        "add user name=ben account=speech cluster=hall-2",
        "modify user where name=ben cluster=hall-2 set defaultaccount=speech",
    ]
    kept = _change(teams, rows, qos)
    assert _said(kept) == moved
    assert kept.notes == ("User ben is in the account vision and not in that team: --remove takes it out.",)
    removed = _change(teams, rows, qos, remove=True)
    assert _said(removed) == [*moved, "delete user where name=ben account=vision cluster=hall-2"] and not removed.notes


def test_a_team_is_deleted_only_when_told_and_no_other_account_ever() -> None:
    rows = NOTHING + ACCOUNTS + "hall-2|physics||normal|\nhall-2|physics|dora|normal|\n"
    rows += "hall-2|speech||team-speech|team-speech\n"
    kept = _change([VISION], rows, QOS)
    assert kept == Change((), ("Account speech was a team's and is in the file no more: --remove deletes it.",))
    assert _said(_change([VISION], rows, QOS, remove=True)) == ["delete account where name=speech cluster=hall-2"]


def test_a_cluster_is_found_as_slurm_conf_has_it_and_called_as_sacctmgr_does() -> None:
    found = change([VISION], associations(NOTHING), levels(QOS, "gres/gpu"), "Hall-2")
    assert found == _change([VISION], NOTHING, QOS) and any("cluster=hall-2" in command for command in found.commands)


def test_names_of_others_are_data() -> None:
    rows = NOTHING + ACCOUNTS + "hall-2|vision|$(reboot)|normal|\nhall-2|vision|-i|normal|\n"
    assert _change([VISION], rows, QOS, remove=True) == Change((), ())


@pytest.mark.parametrize(
    ("rows", "cluster", "gres", "said"),
    [
        (
            "hall-2|root|\n",
            "hall-2",
            "gres/gpu",
            "Line 1 of assoc is 'hall-2|root|', with 3 fields instead of 5: give ",
        ),
        ("", "hall-2", "gres/gpu", "sacctmgr shows no cluster hall-2, but none: give the name of one as --cluster."),
        (NOTHING, "hall-9", "gres/gpu", "sacctmgr shows no cluster hall-9, but hall-2, hall-3: give the name of one"),
        (NOTHING, "-i", "gres/gpu", "The cluster '-i' is not a name of a cluster: give ClusterName of slurm.conf."),
        (NOTHING, "hall-2", "gpu", "The gres 'gpu' is none: give it as AccountingStorageTRES has it, as gres/gpu."),
    ],
)
def test_what_is_wrong_has_a_sentence(rows: str, cluster: str, gres: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        change([VISION], associations(rows), levels(QOS, "gres/gpu"), cluster, gres)
    assert str(refused.value).startswith(said)
