"""The newest kernel that dnf knows of, in rpm's order, and none where it is there already or dnf knows nothing."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_offered import offered, read_installed

HERE = "5.14.0-427.el9_4.x86_64"


@pytest.mark.parametrize(
    ("output", "status", "said"),
    [
        ("5.14.0-427.8.1.el9_4.x86_64\n", 0, "5.14.0-427.8.1.el9_4.x86_64"),
        ("5.14.0-70.el9.x86_64\n\n5.14.0-503.11.1.el9_5.x86_64\n", 0, "5.14.0-503.11.1.el9_5.x86_64"),
        (f"{HERE}\n", 0, ""),
        ("5.14.0-362.24.1.el9_3.x86_64\n", 0, ""),
        ("5.14.0-427~rc1.el9_4.x86_64\n", 0, ""),
        ("5.14.0-427^git1.el9_4.x86_64\n", 0, ""),
        ("5.14.0-427.8.1.el9_4.x86_64\n", 1, ""),
        ("Last metadata expiration check: 0:10:2 ago\n\n", 0, ""),
    ],
)
def test_the_newest_that_is_not_there(output: str, status: int, said: str) -> None:
    assert offered(lambda _argv: (status, output, ""), "/usr/bin/dnf5", ["5.14.0-70.el9.x86_64", HERE]) == said


def test_packages_that_are_not_installed_have_no_kernel() -> None:
    output = f"kernel\t{HERE}\nkernel-core\t{HERE}\nkernel-core\t5.14.0-70.el9.x86_64\npackage a is not installed\n"
    assert read_installed(output, ("kernel-core",)) == {"kernel-core": [HERE, "5.14.0-70.el9.x86_64"]}
