"""Which kernel packages are held and which are lifted, over every state of one package."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_holds import (
    Bringer,
    Decision,
    Node,
    decide,
    read_record,
    record_text,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_packages import kernels_of, needs_of
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

BUILT, BARE, FOREIGN = "6.8.0-51-generic", "6.8.0-60-generic", "6.11.0-21-generic"
META = "linux-image-generic"


def decided(held: bool, ours: bool, *offers: str, wanted: bool = True, system: str = "Ubuntu 24.04") -> Decision:
    node = Node("1.23.0-695", system, {BUILT, FOREIGN}, [Bringer(META, held, offers)], {META} if ours else ())
    return decide(node, wanted)


@pytest.mark.parametrize(("held", "ours", "wanted"), [*itertools.product((False, True), repeat=3)])
@pytest.mark.parametrize("offers", [(), (BUILT,), (BARE,), (FOREIGN,), (BUILT, BARE)])
def test_every_state_of_a_package(held: bool, ours: bool, wanted: bool, offers: tuple[str, ...]) -> None:
    found = decided(held, ours, *offers, wanted=wanted)
    free = not wanted or offers == (BUILT,)
    foreign_hold = held and not ours
    assert bool(found.hold) == (not free and not held)
    assert bool(found.lift) == (free and held and ours)
    assert bool(found.ours) == (not free and not foreign_hold)
    assert bool(found.remarks) == (wanted and not free and bool(offers))
    # Once done, nothing is left to do.
    then = decided((held or bool(found.hold)) and not found.lift, bool(found.ours), *offers, wanted=wanted)
    assert (then.hold, then.lift, then.ours) == ((), (), found.ours)


def test_of_a_system_that_the_matrix_does_not_know_only_the_driver_counts() -> None:
    assert decided(True, True, FOREIGN, system="Debian 12").lift == (META,)
    assert decided(True, True, FOREIGN, system="").lift == (META,)
    assert decided(True, True, FOREIGN).lift == ()


def test_kernels_are_found_through_other_packages() -> None:
    needs = {
        "linux-image-generic-hwe-22.04": ("linux-image-6.8.0-60-generic", "linux-firmware"),
        "linux-generic-hwe-22.04": ("linux-image-generic-hwe-22.04", "linux-headers-generic-hwe-22.04"),
        "linux-headers-generic-hwe-22.04": ("linux-headers-6.8.0-60-generic",),
        "linux-image-amd64": ("linux-image-6.12.41+deb13-amd64",),
        "linux-image-amd64-dbg": ("linux-image-6.1.0-47-amd64-dbg",),
        "linux-one": ("linux-two",),
        "linux-two": ("linux-one", "linux-image-unsigned-6.8.0-60-generic"),
    }
    assert kernels_of("linux-generic-hwe-22.04", needs) == ("6.8.0-60-generic",)
    assert kernels_of("linux-headers-generic-hwe-22.04", needs) == ()
    assert kernels_of("linux-image-amd64", needs) == ("6.12.41+deb13-amd64",)
    assert kernels_of("linux-image-amd64-dbg", needs) == ()
    assert kernels_of("linux-one", needs) == ("6.8.0-60-generic",)
    assert needs_of("linux-image-6.8.0-51-generic | linux-image-unsigned-6.8.0-51-generic, kmod (>= 27~)") == (
        "linux-image-6.8.0-51-generic", "linux-image-unsigned-6.8.0-51-generic", "kmod",
    )  # fmt: skip


def test_the_record_is_read_as_it_was_written() -> None:
    text = record_text({"linux-image-generic", "linux-generic"})
    assert text == (
        "# Managed by gaudi3.scale: packages of kernels that it has put on hold, and lifts by itself.\n"
        "linux-generic\nlinux-image-generic\n"
    )
    assert read_record(text, "/record") == ("linux-generic", "linux-image-generic")
    assert record_text(()) is None
    with pytest.raises(Refusal, match="/record has the line '-x' in the place of a package's name"):
        read_record("-x\n", "/record")
