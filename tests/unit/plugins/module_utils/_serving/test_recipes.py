"""Where a replica keeps compiled graphs: a folder that the trainer's command knows, another one for what differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import serving_recipes
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import recipes
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.releases import Releases
from gaudi3_scale.recipe_cache.archive import pack, read_key
from gaudi3_scale.recipe_cache.key import CacheKey
from gaudi3_scale.recipe_cache.recipe_store import Store

ROOT = Path(__file__).resolve().parents[5]
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64}


def test_the_folder_is_one_of_the_trainers(tmp_path: Path) -> None:
    key = recipes.key_of("1.24.1-12", "gaudi3", 4, CONFIG, {"image": "x:1"})
    assert (key.release, key.card, key.dtype, key.parallelism) == ("1.24.1", "gaudi3", "bfloat16", "tp4")
    fields = dict(each.split("=", 1) for each in key.arguments()[1::2])
    assert CacheKey(**fields).name == key.name and key.name.startswith("1.24.1_gaudi3_bfloat16_")
    top = Path(recipes.top_of(str(tmp_path), 2))
    place = top / key.name
    (place / recipes.RECIPES).mkdir(parents=True)
    (place / recipes.RECORD).write_text(key.record())
    (found,) = Store(top).entries()
    assert str(found.recipes) == recipes.folder_of(str(tmp_path), 2, key.name)
    assert found.variable(4096) == recipes.variable(str(found.recipes), 4096)


def test_what_graphs_depend_on_has_a_folder_of_its_own() -> None:
    usual = recipes.key_of("1.24.1", "gaudi3", 1, CONFIG, {"image": "x:1"}).name
    others = [
        recipes.key_of("1.24.0", "gaudi3", 1, CONFIG, {"image": "x:1"}),
        recipes.key_of("1.24.1", "gaudi2", 1, CONFIG, {"image": "x:1"}),
        recipes.key_of("1.24.1", "gaudi3", 2, CONFIG, {"image": "x:1"}),
        recipes.key_of("1.24.1", "gaudi3", 1, {**CONFIG, "hidden_size": 128}, {"image": "x:1"}),
        recipes.key_of("1.24.1", "gaudi3", 1, CONFIG, {"image": "x:2"}),
    ]
    assert len({usual, *(each.name for each in others)}) == 6
    assert recipes.key_of("1.24.1-7", "gaudi3", 1, json.loads(json.dumps(CONFIG)), {"image": "x:1"}).name == usual


class Node:
    """What the functions use of AnsibleModule."""

    def __init__(self, root: Path, **params: str) -> None:
        trainer = root / "gaudi3-train"
        trainer.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/trainer/src exec {sys.executable} -m gaudi3_scale "$@"\n')
        trainer.chmod(0o755)
        given = {"root": str(root), "trainer": str(trainer), "recipe_cache_from": "", "recipe_cache_key_file": ""}
        self.params, self.check_mode = {**given, **params}, False
        self.warnings: list[str] = []

    def warn(self, said: str) -> None:
        self.warnings.append(said)

    def run_command(self, argv: list[str], handle_exceptions: bool = True) -> tuple[int, str, str]:
        assert not handle_exceptions
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


def prepared(node: Node, key: recipes.Key) -> list[Path]:
    module: Any = node
    serving_recipes.prepare(module, key, 2, (os.geteuid(), os.getegid()))
    return [Path(recipes.folder_of(node.params["root"], number, key.name)) for number in (1, 2)]


def test_a_replica_begins_with_an_archive_or_compiles(tmp_path: Path) -> None:
    key = recipes.key_of("1.24.1", "gaudi3", 1, CONFIG, {})
    made, secret, archive = tmp_path / "made", tmp_path / "cluster.key", tmp_path / "recipes.tar"
    made.mkdir()
    (made / "one").write_text("graph")
    secret.write_bytes(bytes(range(32)))
    secret.chmod(0o600)
    pack(made, CacheKey(**vars(key)), archive, read_key(secret))
    node = Node(tmp_path, recipe_cache_from=str(archive), recipe_cache_key_file=str(secret))
    for place in prepared(node, key):
        assert (place / "one").read_text() == "graph" and place.stat().st_uid == os.geteuid()
    assert node.warnings == []
    # One for something else is refused, and said: graphs are compiled into an empty folder.
    other = recipes.key_of("1.24.0", "gaudi3", 1, CONFIG, {})
    for place in prepared(node, other):
        assert list(place.iterdir()) == []
    assert "is for release '1.24.1' and '1.24.0' is wanted" in node.warnings[0], node.warnings
    assert node.warnings[0].endswith("The graphs are compiled.")
    # What the bridge has added is not replaced.
    (place / "two").write_text("")
    prepared(node, other)
    assert (place / "two").exists() and len(node.warnings) == 2


def test_graphs_go_with_the_last_release_that_uses_them(tmp_path: Path) -> None:
    node: Any = Node(tmp_path)
    kept, gone = (recipes.key_of(release, "gaudi3", 1, CONFIG, {}) for release in ("1.24.1", "1.24.0"))
    for name, key in (("new", kept), ("old", gone)):
        prepared(node, key)
        (tmp_path / "releases" / name).mkdir(parents=True)
        (tmp_path / "releases" / name / "release.json").write_text(json.dumps({"recipes": key.name}))
    found = Releases(str(tmp_path))
    assert serving_recipes.prune(node, found, [], 2) == []
    node.check_mode = True
    predicted = serving_recipes.prune(node, found, ["old"], 2)
    assert predicted == [f"{recipes.top_of(str(tmp_path), number)}/{gone.name}" for number in (1, 2)]
    assert all(Path(each).exists() for each in predicted)
    node.check_mode = False
    assert serving_recipes.prune(node, found, ["old"], 2) == predicted
    assert os.listdir(recipes.top_of(str(tmp_path), 1)) == [kept.name]
