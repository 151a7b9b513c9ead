"""The list of a backup: the same for the same content, refused where it is another's, and each difference named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import kinds, manifest
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.manifest import Entry
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

SHA = "a" * 64
ITSELF = Entry("fence", "", "folder", 0o755, "root", "root")
ONE = Entry("fence", "fence.json", "file", 0o644, "root", "adm", 12, SHA)
LEADS = Entry("fence", "last", "link", 0o777, "root", "root", 0, "fence.json")


def made(*entries: Entry) -> manifest.Manifest:
    items = {"fence": {"path": "/var/lib/gaudi3-scale/health", "way": "tree"}}
    return manifest.Manifest("n1", ("node",), items, {"prometheus": "2.42.0"}, entries or (ITSELF, ONE, LEADS))


def test_the_same_content_has_the_same_text_in_any_order() -> None:
    text = manifest.write(made())
    assert manifest.write(made(LEADS, ONE, ITSELF)) == text
    assert manifest.read(text, "snapshot 1") == made()
    assert manifest.digest(made()) != manifest.digest(made(ITSELF, ONE._replace(mode=0o600), LEADS))
    # Another version of the collection adds no snapshot of the same content.
    assert manifest.digest(replace(made(), made_by="9.9.9")) == manifest.digest(made())
    assert made().size == 12


@pytest.mark.parametrize(
    ("layout", "way"),
    [
        (
            2,
            "layout 2, and this version of gaudi3.scale reads layout 1: install version 1.9.0, or a later one.",
        ),
        (0, "layout 0, and this version of gaudi3.scale reads layout 1: restore it with version 1.9.0."),
        ("1", "layout '1', and this version of gaudi3.scale reads layout 1: restore it with version 1.9.0."),
    ],
)
def test_another_layout_is_refused_with_the_way(layout: Any, way: str) -> None:
    text = json.dumps({**json.loads(manifest.write(made())), "layout": layout, "made_by": "1.9.0"})
    with pytest.raises(Refusal) as refused:
        manifest.read(text, "snapshot 1a2b3c4d")
    assert str(refused.value) == f"snapshot 1a2b3c4d has {way}"


@pytest.mark.parametrize(
    "entries",
    [
        [ITSELF, Entry("fence", "out", "link", 0o777, "root", "root", 0, "/etc"), ONE._replace(path="out/cron.d")],
        [ITSELF, ONE._replace(path="gone/file")],
        [ONE._replace(path=""), ONE],
        [ONE],
    ],
)
def test_a_file_below_a_link_a_file_or_nothing_is_refused(entries: list[Entry]) -> None:
    with pytest.raises(Refusal) as refused:
        manifest.read(manifest.write(made(*entries)), "snapshot 1a2b3c4d")
    assert str(refused.value) == "snapshot 1a2b3c4d has a manifest that is damaged: restore another snapshot."


def test_what_can_be_backed_up_can_be_restored() -> None:
    """Users of a domain, and a site's own paths, have names as they like."""
    name = kinds.name_of("/srv/Größe (neu)/a+b")
    owned = Entry(name, "", "folder", 0o755, "CORP\\alice smith", "domain users")
    given = manifest.Manifest("n1", (), {name: {"path": "/srv/Größe (neu)/a+b", "way": "tree"}}, {}, (owned,))
    assert manifest.read(manifest.write(given), "snapshot 1") == given
    with pytest.raises(Refusal, match=r"^the path .* is too long for a backup: name a folder above it\.$"):
        kinds.items([], {}, ["/srv/" + "deep/" * 60])


def test_a_backup_has_the_version_that_made_it_and_one_without_is_read() -> None:
    told = json.loads(manifest.write(made()))
    version = yaml.safe_load((Path(__file__).parents[5] / "galaxy.yml").read_text())["version"]
    assert told.pop("made_by") == version, "VERSION is galaxy.yml's"
    assert manifest.read(json.dumps(told), "snapshot 1") == replace(made(), made_by="")


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../../etc/shadow"}, {"path": "/etc/shadow"}, {"path": "a//b"}, {"path": "."}, {"item": ".."},
        {"item": "a/b"}, {"mode": "0644"}, {"mode": 0o10000}, {"size": -1}, {"content": "none"}, {"kind": "device"},
        {"owner": "root:root"}, {"owner": "a\x1b[2J"}, {"owner": 0},
        {"more": 1}, {"path": "a\0b"}, {"item": "other"}, {"path": ""},
    ],
)  # fmt: skip
def test_a_manifest_that_leads_elsewhere_is_refused(change: dict[str, Any]) -> None:
    told = json.loads(manifest.write(made()))
    next(each for each in told["entries"] if each["path"] == "fence.json").update(change)
    with pytest.raises(Refusal, match=r"^snapshot 1 has a manifest that is damaged: restore another snapshot\.$"):
        manifest.read(json.dumps(told), "snapshot 1")


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100000, "null"])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match=r"has no manifest that can be read"):
        manifest.read(text, "snapshot 1")


def test_every_difference_is_named() -> None:
    other = [
        ITSELF._replace(mode=0o700),
        ONE._replace(size=13, owner="anna"),
        LEADS._replace(content="elsewhere"),
        ONE._replace(path="new"),
    ]
    assert manifest.differences([ITSELF, ONE, LEADS], other) == [
        "fence has mode 0700, and had 0755",
        "fence/fence.json belongs to anna:adm, and did to root:adm",
        "fence/fence.json has 13 bytes, and had 12",
        "fence/last leads elsewhere",
        "fence/new is not in the backup",
    ]
    assert manifest.differences([ONE], [ONE._replace(content="b" * 64)]) == ["fence/fence.json has another content"]
    assert manifest.differences([ONE, LEADS], [LEADS._replace(kind="folder")]) == [
        "fence/fence.json is missing",
        "fence/last is a folder, and was a link",
    ]
    assert manifest.differences([ITSELF, ONE, LEADS], [LEADS._replace(mode=0o755), ONE, ITSELF]) == []


def test_a_list_shows_no_content() -> None:
    assert manifest.listed(made()).splitlines() == [
        "0755 root:root          0 folder fence",
        "0644 root:adm         12 aaaaaaaaaaaa fence/fence.json",
        "0777 root:root          0 link fence/last",
    ]
    assert manifest.listed(None) == ""
