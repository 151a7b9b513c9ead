"""dnf5's file of locks: an entry for each kernel that has the driver, and the site's are kept byte by byte."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_locks import PACKAGES, Locks
from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_locks_dnf5 import decide
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

PATH = "/etc/dnf/versionlock.toml"
OLD, NEW = "5.14.0-427.13.1.el9_4", "5.14.0-427.40.1.el9_4"
#: As dnf5 5.4.6 writes it for 'dnf5 versionlock add vim'.
VIM = """version = "1.0"

[[packages]]
name = "vim"
comment = "Added by 'versionlock add' command on 2026-11-29 23:51:56"

[[packages.conditions]]
key = "evr"
comparator = "="
value = "9-1"
"""
CORE = f"""
[[packages]]
name = "kernel-core"
comment = "gaudi3.scale: this kernel has the driver"

[[packages.conditions]]
key = "evr"
comparator = "="
value = "0:{OLD}"
"""


def decided(
    text: str, *releases: str, ours: tuple[str, ...] = (), wanted: bool = True, installed: tuple[str, ...] = PACKAGES
) -> Locks:
    kernels = [f"{release}.x86_64" for release in releases]
    return decide(text, installed, kernels, "RedHat 9.4", ours, wanted, PATH)


def text_of(locks: Locks) -> str:
    return "".join(f"{line}\n" for line in locks.lines)


def test_an_entry_is_as_dnf5_writes_it_and_is_taken_out_again() -> None:
    first = decided(VIM, OLD, installed=("kernel-core",))
    assert (text_of(first), first.ours) == (VIM + CORE, (f"dnf5:kernel-core-0:{OLD}",))
    again = decided(VIM + CORE, OLD, ours=first.ours, installed=("kernel-core",))
    assert (again.added, again.removed, text_of(again)) == ((), (), VIM + CORE)
    off = decided(VIM + CORE, OLD, ours=first.ours, wanted=False)
    assert (text_of(off), off.removed, off.ours) == (VIM, first.ours, ())
    alone = decided("", OLD, installed=("kernel-core",))
    assert text_of(alone) == 'version = "1.0"\n' + CORE
    assert decided(text_of(alone), OLD, ours=alone.ours, wanted=False).lines == ()


def test_a_kernel_that_got_its_driver_gets_its_entries_and_one_that_went_loses_them() -> None:
    text, ours = "", ()
    for kernels, count in (((OLD,), 5), ((OLD, NEW), 5), ((NEW,), 0)):
        found = decided(text, *kernels, ours=ours)
        text, ours = text_of(found), found.ours
        assert (len(found.added), len(ours)) == (count, 5 * len(kernels))
        assert [text.count(f'"0:{each}"') for each in (OLD, NEW)] == [5 * (each in kernels) for each in (OLD, NEW)]
    assert decided(text, NEW, ours=ours).added == ()


@pytest.mark.parametrize("name", ["kernel-core", "kernel*", "*"])
def test_a_package_that_the_site_has_locked_is_left_to_it(name: str) -> None:
    site = f"""# of the site
version = "1.0"
# not before spring
[[packages]]
name = '{name}' # all
conditions = [
  {{ key = "evr", comparator = "<", value = "6" }},
]
# the end
"""
    found = decided(site, OLD)
    left = {"kernel-core"} if name == "kernel-core" else {*PACKAGES}
    assert {*found.names} == {*PACKAGES} - left
    assert text_of(found).startswith(site)
    off = decided(text_of(found), OLD, ours=found.ours, wanted=False)
    assert text_of(off) == site
    # One of the site that is the same as ours would be stays the site's.
    assert decided('version = "1.0"\n' + CORE, OLD, wanted=False).removed == ()


def test_comments_above_an_entry_that_goes_stay() -> None:
    text = f'version = "1.0"\n\n# mine{CORE}\n# of vim\n' + VIM.partition("\n\n")[2]
    off = decided(text, OLD, ours=(f"dnf5:kernel-core-0:{OLD}",), wanted=False)
    assert text_of(off) == 'version = "1.0"\n# mine\n\n# of vim\n' + VIM.partition("\n\n")[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VIM.partition("\n")[2], f'{PATH} does not begin with version = "1.0", without which dnf5 passes over'),
        (VIM.replace("1.0", "2.0"), f'{PATH} does not begin with version = "1.0", without which dnf5 passes over'),
        ('version = "1.0"\npackages = [{ name = "a" }]\n', f"Line 2 of {PATH} is 'packages = [{{ name = \"a\" }}]', w"),
        (
            'version = "1.0"\n[[packages]\nname = "a"\n[other]\n',
            f"Line 4 of {PATH} is '[other]', which is not in the f",
        ),
        ('version = "1.0"\n[[packages]]\ncomment = "a"\n', f"{PATH} has an entry without a name ('comment = \"a\"')"),
    ],
)
def test_what_dnf5_would_pass_over_or_writes_otherwise_is_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        decided(text, OLD)
    assert str(caught.value).startswith(said)
