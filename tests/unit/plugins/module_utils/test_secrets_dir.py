"""Which folder a cluster's secrets get by default, and which folders are part of an inventory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible import constants
from ansible.errors import AnsibleLookupError

from ansible_collections.gaudi3.scale.plugins.lookup.state_dir import LookupModule
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._secrets_dir import (
    advice,
    default_folder,
    enclosing_source,
    outside_of_the_inventory,
    state_folder,
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for folder in ("inventories/mine/group_vars", "inventories/other", "deployments/demo/inventory", "odd name (1)"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "inventories/mine/hosts.yml").touch()
    return tmp_path


def default(*sources: object, **environment: str) -> str:
    folder = default_folder([str(source) for source in sources], {"XDG_CONFIG_HOME": "/config", **environment})
    assert folder is not None
    return folder


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("inventories/mine", "mine"),
        ("inventories/mine/hosts.yml", "mine"),
        ("deployments/demo/inventory", "demo"),
        ("odd name (1)", "odd-name-1"),
        ("inventories/not-there.yml", ""),
    ],
)
def test_the_folder_is_named_after_the_inventory(site: Path, source: str, name: str) -> None:
    folder = default(site / source)
    assert folder.startswith(f"/config/gaudi3-scale/{name or site.name}-")
    assert len(folder.rpartition("-")[2]) == 8


def test_folder_and_file_links_and_relative_paths_mean_the_same(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "link").symlink_to(site / "inventories/mine")
    monkeypatch.chdir(site)
    assert len({default(path) for path in ("inventories/mine", "./inventories/mine/hosts.yml", site / "link")}) == 1


def test_two_clusters_of_one_name_have_two_folders(site: Path) -> None:
    (site / "copy/inventories/mine").mkdir(parents=True)
    assert default(site / "inventories/mine") != default(site / "copy/inventories/mine")


def test_of_several_sources_the_first_with_a_folder_counts(site: Path) -> None:
    mine = default(site / "inventories/mine")
    assert default("gaudi-01,gaudi-02", site / "inventories/mine", site / "inventories/other") == mine
    assert default(site / "inventories/other", site / "inventories/mine") != mine


@pytest.mark.parametrize("sources", [[], ["gaudi-01,"], ["a,b", "c,"]])
def test_lists_of_hosts_have_no_folder(sources: list[str]) -> None:
    assert default_folder(sources, {}) is None
    assert enclosing_source("/anywhere", sources) is None


def test_without_a_folder_for_configuration_it_is_in_the_home(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    for given in ("", "relative"):
        folder = default(site / "inventories/mine", XDG_CONFIG_HOME=given)
        assert folder.startswith("/home/user/.config/gaudi3-scale/mine-")


@pytest.mark.parametrize(
    ("directory", "inside"),
    [
        ("inventories/mine/secrets", True),
        ("inventories/mine", True),
        ("inventories/mine/a/b", True),
        ("inventories/mine/../mine/secrets", True),
        ("inventories/mine/group_vars/secrets", True),
        ("linked/secrets", True),
        ("inventories/mine/away", True),
        ("inventories/mine/.secrets", False),
        ("inventories/mine/.hidden/secrets", False),
        ("inventories/mine-secrets", False),
        ("inventories/secrets", False),
        ("elsewhere", False),
    ],
)
def test_what_lies_in_an_inventory_folder(site: Path, directory: str, inside: bool) -> None:
    (site / "linked").symlink_to(site / "inventories/mine")
    (site / "elsewhere").mkdir()
    # Ansible follows a link in the inventory.
    (site / "inventories/mine/away").symlink_to(site / "elsewhere")
    sources = ["gaudi-01,", str(site / "nowhere/hosts.yml"), str(site / "inventories/mine")]
    assert enclosing_source(str(site / directory), sources) == (sources[2] if inside else None)


@pytest.mark.parametrize(
    ("directory", "inside"),
    [("secrets", True), ("", True), ("group_vars/x", True), ("host_vars/x", True), (".x", False), ("../x", False)],
)
def test_of_a_source_that_is_a_file_its_folder_counts(site: Path, directory: str, inside: bool) -> None:
    """The next run may be given the folder, and group_vars beside the file are read already."""
    mine = site / "inventories/mine"
    (mine / "hosts.yml").touch()
    (site / "link.yml").symlink_to(mine / "hosts.yml")
    for source in (mine / "hosts.yml", site / "link.yml"):
        found = enclosing_source(str(mine / directory), ["gaudi-01,", str(source)])
        beside_the_link = source.name == "link.yml" and directory == "../x"
        assert (found is not None) is (inside or beside_the_link)


@pytest.mark.parametrize("directory", ["inventories/mine/health", "inventories/mine", "inventories/mine/group_vars"])
def test_what_nodes_say_is_not_written_into_an_inventory(site: Path, directory: str) -> None:
    (site / "inventories/mine/hosts.yml").touch()
    for source in ("inventories/mine", "inventories/mine/hosts.yml"):
        with pytest.raises(Refusal, match="set health_directory to a folder outside of it, or leave it out"):
            outside_of_the_inventory(str(site / directory), [str(site / source)], "health_directory")
    outside = str(site / "elsewhere")
    assert outside_of_the_inventory(outside, [str(site / "inventories/mine")], "health_directory") == outside


def test_what_is_kept_of_nodes_lies_beside_nothing_else_and_is_the_same_from_every_folder(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(site / "inventories/mine")
    found = state_folder([source], {"XDG_STATE_HOME": "/state"})
    assert found is not None
    assert os.path.basename(found) == os.path.basename(default_folder([source], {}) or "")
    assert os.path.dirname(found) == "/state/gaudi3-scale"
    monkeypatch.chdir(site)
    assert state_folder(["inventories/mine"], {"XDG_STATE_HOME": "/state"}) == found
    home = state_folder([source], {"XDG_STATE_HOME": "relative"})
    assert home is not None and home.startswith(os.path.expanduser("~/.local/state/gaudi3-scale/mine-"))
    assert state_folder(["gaudi-01,"], {}) is None


def test_the_folder_of_reports_and_passports_is_given_or_the_clusters(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(site / "state"))
    monkeypatch.setenv("PWD", str(site))
    look_up, listed = LookupModule(), {"ansible_inventory_sources": ["gaudi-01,"]}
    mine = {"ansible_inventory_sources": [str(site / "inventories/mine")]}
    (default_of,) = look_up.run(["health"], mine)
    assert (Path(default_of).name, Path(default_of).parents[2]) == ("health", site / "state")
    assert look_up.run(["doctor"], listed, folder="there/") == [str(site / "there")]
    for terms, variables, folder in (
        (["health"], listed, ""), (["x"], mine, ""), (["doctor"], mine, "inventories/mine/doctor"),
    ):  # fmt: skip
        with pytest.raises(AnsibleLookupError):
            look_up.run(terms, variables, folder=folder)
    assert look_up.run(["health"], listed, read_only=True) == [""]
    # A node could have set the folder.
    monkeypatch.setattr(constants.config, "get_config_value", lambda name: name == "INJECT_FACTS_AS_VARS")
    assert look_up.run(["health"], listed, read_only=True) == [""]
    with pytest.raises(AnsibleLookupError, match="inject_facts_as_vars is true"):
        look_up.run(["health"], mine)


def test_the_default_never_lies_in_the_inventory_it_is_for(site: Path) -> None:
    for source in ("inventories/mine", "deployments/demo/inventory", "odd name (1)"):
        assert enclosing_source(default(site / source), [str(site / source)]) is None


def test_advice_for_each_case(site: Path) -> None:
    old, new = site / "odd name (1)", site / "config/mine-1"
    assert advice(str(old), str(new)) == f"set gaudi_secrets_dir to a folder outside of it, or leave it out for {new}"
    assert advice(str(old), None) == "move it out of there and set gaudi_secrets_dir to it"
    (old / "ca.crt").touch()
    above = site / "config"
    assert advice(str(old), str(new)) == (
        f"move it with `mkdir -p {above} && chmod 700 {above} && mv '{old}' {new}`, and leave gaudi_secrets_dir out or "
        "set it to the new place"
    )
    new.mkdir(parents=True)
    assert advice(str(old), str(new)) == f"compare it with {new}, which is there too, and remove one of the two"
