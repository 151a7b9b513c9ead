"""Which cards a job of Slurm has, and what its processes get to know of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import cards, conf

MODULES = {0: 3, 1: 0, 2: 1, 3: 2, 4: 7, 5: 6, 6: 5, 7: 4}


def test_the_modules_of_a_node_are_read_from_its_driver(tmp_path: Path) -> None:
    for index, module in ((0, "1"), (10, "7"), (2, "none")):
        device = tmp_path / f"class/accel/accel{index}/device"
        device.mkdir(parents=True)
        (device / "module_id").write_text(f"{module}\n")
    (tmp_path / "class/accel/accel_controlD0").mkdir()
    assert cards.modules_of_node(str(tmp_path)) == {1: 0, 7: 10}
    assert cards.modules_of_node(str(tmp_path / "none")) == {}


@pytest.mark.parametrize(
    ("environment", "places"),
    [
        ({"SLURM_JOB_GPUS": "0,1,2"}, (0, 1, 2)),
        ({"SLURM_JOB_GPUS": "0-2,7"}, (0, 1, 2, 7)),
        ({"SLURM_JOB_GPUS": "0,1,2,3", "SLURM_STEP_GPUS": "2"}, (2,)),
        ({}, ()),
        ({"SLURM_JOB_GPUS": "x,,1-y,3"}, (3,)),
    ],
)
def test_the_places_of_a_jobs_cards(environment: dict[str, str], places: tuple[int, ...]) -> None:
    assert cards.places(environment) == places


def test_places_are_those_of_the_file_that_slurm_reads() -> None:
    files = cards.files_of(conf.gres_conf(MODULES))
    assert files == [3, 0, 1, 2, 7, 6, 5, 4]
    assert cards.allocation((4, 5), files, MODULES) == cards.Allocation((4, 5), (7, 6))
    assert cards.allocation((7, 9), files, {**MODULES, 7: 4}) == cards.Allocation((7,), (4,))


def test_a_card_that_has_got_another_place_since_is_the_one_of_its_file() -> None:
    """The device file is what Slurm gave; its module id is the driver's word of now."""
    files = cards.files_of(conf.gres_conf({0: 0, 1: 1}))
    assert cards.allocation((0,), files, {0: 1, 1: 0}) == cards.Allocation((1,), (0,))
    assert cards.allocation((0, 1), files, {1: 1}) == cards.Allocation((1,), (1,))


@pytest.mark.parametrize(
    ("modules", "supported", "ever"),
    [((), True, False), ((5,), True, True), ((2, 3), True, True), ((1, 2), False, True), ((4, 5, 6, 7), True, True),
     ((2, 3, 4, 5), False, True), ((0, 1, 2), False, False), (tuple(range(8)), True, True)],
)  # fmt: skip
def test_sets_that_the_vendor_supports(modules: tuple[int, ...], supported: bool, ever: bool) -> None:
    found = cards.Allocation(modules, modules)
    assert (found.is_supported, found.can_be_supported) == (supported, ever)


def test_the_cards_override_what_files_say_and_quotes_go() -> None:
    texts = ['# a comment\nexport HCCL_OVER_OFI="1"\nHABANA_VISIBLE_MODULES=0\n', "A=b c\nnot a line\n"]
    assert cards.exports(cards.Allocation((4, 5), (7, 6)), texts) == [
        "export HCCL_OVER_OFI=1",
        "export HABANA_VISIBLE_MODULES=4,5",
        "export A=b c",
        "export HABANA_VISIBLE_DEVICES=7,6",
    ]
    assert cards.exports(cards.Allocation((), ()), []) == []
