"""Lines of dnf's versionlock: one for each kernel that has the driver, and the site's are left alone."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_locks import PACKAGES, Locks, decide

OLD, NEW = "5.14.0-427.13.1.el9_4", "5.14.0-427.40.1.el9_4"
ALL = {*PACKAGES}


def lines(*releases: str, names: tuple[str, ...] = PACKAGES) -> list[str]:
    return [f"{name}-0:{release}.*" for name in names for release in releases]


def decided(text: str, *releases: str, ours: list[str] | None = None, wanted: bool = True) -> Locks:
    kernels = [f"{release}.x86_64" for release in releases]
    return decide(text, ALL, kernels, "RedHat 9.4", ours or [], wanted)


def test_a_kernel_that_got_its_driver_gets_its_lines() -> None:
    first = decided("", OLD)
    assert (first.added, first.lines, sorted(lines(OLD))) == (tuple(lines(OLD)), tuple(lines(OLD)), list(first.ours))
    text = "".join(f"{line}\n" for line in first.lines)
    again = decided(text, OLD, ours=[*first.ours])
    assert (again.added, again.removed, again.lines) == ((), (), first.lines)
    built = decided(text, OLD, NEW, ours=[*first.ours])
    assert (sorted(built.added), built.removed) == (sorted(lines(NEW)), ())
    gone = decided("".join(f"{line}\n" for line in built.lines), NEW, ours=[*built.ours])
    assert (sorted(gone.removed), sorted(gone.lines)) == (sorted(lines(OLD)), sorted(lines(NEW)))


def test_what_the_site_has_locked_is_left_to_it() -> None:
    text = "# Added lock on Mon\nkernel-core-0:5.14.0-362.el9.*\n!kernel-modules-0:5.14.0-503.el9.*\nvim-minimal\n"
    found = decided(text, OLD)
    assert found.lines[:4] == tuple(text.splitlines())
    assert found.added == tuple(lines(OLD, names=("kernel", "kernel-modules-core", "kernel-modules-extra")))
    off = decided("".join(f"{line}\n" for line in found.lines), OLD, ours=[*found.ours], wanted=False)
    assert (off.lines, off.ours) == (tuple(text.splitlines()), ())
    for own in ("kernel", "kernel.x86_64", "kernel-5.14.0-427.el9"):
        assert {line.partition("-0:")[0] for line in decided(own + "\n", OLD).added} == ALL - {"kernel"}, own


def test_a_line_that_is_the_same_as_the_sites_stays_the_sites() -> None:
    text = lines(OLD)[0] + "\n"
    found = decided(text, OLD)
    assert lines(OLD)[0] not in found.ours
    assert decided(text, OLD, wanted=False).lines == (lines(OLD)[0],)


def test_only_what_is_installed_and_may_run_there_has_lines() -> None:
    kernels = ["6.12.0-55.el10.x86_64", f"{OLD}.x86_64", "5.14.0-427.13.1.el9_4.x86_64+rt"]
    assert decide("", {"kernel-core"}, kernels, "RedHat 9.4", [], True).lines == (f"kernel-core-0:{OLD}.*",)
