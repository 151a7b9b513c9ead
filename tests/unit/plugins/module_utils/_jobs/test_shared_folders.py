"""Which folders nodes share, by their mounts."""

from __future__ import annotations

import os
import pwd

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.shared_folders import network_source, uid_of

MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
nas:/jobs /var/lib/gaudi3-scale nfs4 rw 0 0
/dev/nvme0n1 /var/lib/gaudi3-scale/local xfs rw 0 0
vol@fs /mnt/with\040blank fuse.glusterfs rw 0 0
nas:/home /home nfs rw 0 0
/dev/sdb1 /home ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/var/lib/gaudi3-scale/jobs", "nas:/jobs"),
        ("/var/lib/gaudi3-scale", "nas:/jobs"),
        ("/var/lib/gaudi3-scale-other", None),
        ("/var/lib/gaudi3-scale/local/jobs", None),
        ("/mnt/with blank/jobs", "vol@fs"),
        ("/home/jobs", None),  # what is mounted over another hides it
        ("/srv", None),
    ],
)
def test_the_innermost_mount_counts(path: str, source: str | None) -> None:
    assert network_source(path, MOUNTS) == source


def test_a_user_who_is_not_there_has_no_number() -> None:
    assert uid_of("no-such-user") is None
    assert uid_of(pwd.getpwuid(os.getuid()).pw_name) == os.getuid()
