"""Versions: what is public is printed as it was seen, and what is not can be told by its look."""

from __future__ import annotations

import re

import pytest

from gaudi3_simulator.node import releases, store
from gaudi3_simulator.vendor.repository import RELEASES as OFFERED

# Each line from a public transcript; the sources stand in simulator/printed.yml.
SEEN = {
    "1.15.1-15": ("hl-1.15.1-fw-49.0.0.0", "1.15.1-62f612b", None),
    "1.17.1-40": ("hl-1.17.1-fw-51.5.0", "1.17.1-78932ae", None),
    "1.18.0-524": ("hl-1.18.0-fw-53.1.1.1", "1.18.0-ee698fb", "1.18.0-95323a5"),
    "1.19.1-26": (None, "1.19.1-6f47ddd", "1.19.1-f071c23"),
    "1.20.0-543": ("hl-1.20.0-fw-58.1.1.1", "1.20.0-bd87f71", "1.20.0-e4fe12d"),
    "1.20.1-97": (None, "1.20.1-366eb9c", "1.20.1-213b09b"),
    "1.21.0-555": ("hl-1.21.0-fw-59.2.1.0", None, None),
    "1.21.1-16": ("hl-1.21.1-fw-59.2.3.0", "1.21.1-bfcec49", "1.21.1-ead2cb0"),
    "1.22.0-740": (None, "1.22.0-5f8fa9f", "1.22.0-5f8fa9f"),
    "1.22.1-6": ("hl-1.22.1-fw-61.4.2.1", "1.22.1-97ec1a4", "1.22.1-97ec1a4"),
    "1.23.0-695": ("hl-1.23.0-fw-62.2.1.1", "1.23.0-2eae87a", "1.23.0-2eae87a"),
    "1.24.0-1007": ("hl-1.24.0-fw-62.6.2.0", "1.24.0-bb94c81", "1.24.0-bb94c81"),
    "1.24.1-482": ("hl-1.24.0-fw-62.6.2.0", "1.24.1-b336d5e", "1.24.1-b336d5e"),
}
PREBOOT = {
    "1.20.0-543": "hl-gaudi3-1.20.0-fw-58.1.1-sec-2",
    "1.22.0-740": "hl-gaudi3-1.22.0-fw-61.3.2-sec-9",
    "1.24.0-1007": "hl-gaudi3-1.24.0-fw-62.6.1-sec-3",
}


@pytest.mark.parametrize("release", SEEN)
def test_versions_are_those_that_were_seen(release: str) -> None:
    info = releases.release_info(release)
    tool, driver, nic = SEEN[release]
    assert tool in (None, info.tool)
    assert driver in (None, info.driver)
    assert nic in (None, info.nic_driver)
    assert PREBOOT.get(release, info.preboot) == info.preboot


@pytest.mark.parametrize("release", [*SEEN, *OFFERED, "1.16.0-526", "1.22.2-32", "1.24.2-481", "1.25.0-1", "2.0.0-7"])
def test_what_nobody_has_published_is_marked(release: str) -> None:
    info = releases.release_info(release)
    assert info.release == release.partition("-")[0]
    tool, driver, nic = SEEN.get(release, (None, None, None))
    for shown, seen in ((info.tool, tool), (info.driver, driver), (info.nic_driver, nic)):
        assert shown == seen or shown.endswith("-sim"), shown
    assert info.preboot == PREBOOT.get(release) or info.preboot.endswith("-sim")


def test_every_release_that_is_offered_can_be_told_from_made_up_ones() -> None:
    """A made-up part may be offered, and then it says so itself."""
    for release in OFFERED:
        info = releases.release_info(release)
        unknown = [name for name in releases.PARTS if name not in releases.seen(release)]
        assert all(getattr(info, name).endswith("-sim") for name in unknown), (release, unknown)


@pytest.mark.parametrize("release", ["1.22.0", "1.22.1", "1.22.2", "1.23.0", "1.24.2", "1.26.3"])
def test_from_1_22_on_both_drivers_are_of_one_build(release: str) -> None:
    info = releases.release_info(release)
    assert info.nic_driver == info.driver


@pytest.mark.parametrize("release", ["1.16.0", "1.18.0", "1.19.2", "1.20.0", "1.21.1"])
def test_before_they_are_of_two(release: str) -> None:
    info = releases.release_info(release)
    assert info.nic_driver != info.driver


def test_readers_of_versions_still_find_their_numbers() -> None:
    """Other people's expressions, on marked values too: x.y.z of a driver, both numbers of the tool."""
    for release in ("1.22.0-740", "1.24.2-481", "1.19.0-561"):
        info = releases.release_info(release)
        assert re.findall(r"^\d+\.\d+\.\d+", info.driver) == [info.release]
        assert re.findall(r"hl-([\d.]+)", info.tool) == [info.release]
        (firmware,) = re.findall(r"fw-([\d.]+)", info.tool)
        assert firmware.count(".") == 3
        assert re.fullmatch(r"hl-gaudi3-[\w.]+-fw-[\w.-]+", info.preboot)


@pytest.mark.parametrize(
    ("release", "there"), [("1.18.0", False), ("1.20.1", False), ("1.21.0", True), ("1.21.3", True), ("1.24.0", True)]
)
def test_the_compatibility_module_comes_with_1_21(release: str, there: bool) -> None:
    assert releases.release_info(release).has_compat is there
    assert ("habanalabs_compat" in releases.module_names(release)) is there


def test_builds_are_those_of_the_package_index() -> None:
    assert {name: releases.release_info(name).build for name in ("1.21.0", "1.22.1", "1.24.0", "1.16.2")} == {
        "1.21.0": "555", "1.22.1": "6", "1.24.0": "1007", "1.16.2": "2",
    }  # fmt: skip


# Public notes of Gaudi 2 nodes: opea-project/Enterprise-Inference; two reports of 1.24.1.
PREBOOT_GAUDI2 = {
    "1.20.0": "hl-gaudi2-1.20.0-fw-58.0.0-sec-9",
    "1.24.0": "hl-gaudi2-1.24.0-fw-62.6.2-sec-11",
}


@pytest.mark.parametrize("release", ["1.18.0", "1.20.0", "1.22.0", "1.23.0", "1.24.0", "1.24.2"])
def test_a_gaudi_2_has_firmware_of_its_own(release: str) -> None:
    """A Gaudi 3's version under a Gaudi 2's name would be one that nobody has published."""
    cards = store.new_state("gaudi-1", 2, release, "HL-225")["cards"]
    images = releases.firmware_files(f"{release}-1")
    image = next(text for path, text in images.items() if "gaudi2" in path)
    for shown in (cards[0]["spi"], image.strip().splitlines()[-1].partition(": ")[2]):
        assert shown.startswith(f"hl-gaudi2-{release}-fw-")
        assert shown == PREBOOT_GAUDI2.get(release) or shown.endswith("-sim"), shown
        assert PREBOOT_GAUDI2.get(release, shown) == shown
