"""Two hundred programs of the same parts in other forms: nothing is lost in silence."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import pytest

from gaudi3_migration import migrate
from gaudi3_migration.arguments import ARGUMENTS

SEEDS = 200
GONE = (
    "use_habana",
    "use_lazy_mode",
    "gaudi_config_name",
    "use_hpu_graphs_for_inference",
    "fp8",
    "warmup_ratio",
    "no_cuda",
)
VALUES = {"gaudi_config_name": "'folder'", "warmup_ratio": "0.1"}


def imports(draw: random.Random) -> tuple[str, str, str, str]:
    """An import in one of its forms, and what trainer, arguments and configuration are called then."""
    form = draw.randrange(6)
    names = ["GaudiTrainer", "GaudiTrainingArguments", "GaudiConfig"]
    draw.shuffle(names)
    if form == 0:
        return (
            f"from optimum.habana import {', '.join(names)}\n",
            "GaudiTrainer",
            "GaudiTrainingArguments",
            "GaudiConfig",
        )
    if form == 1:
        return (
            "from optimum.habana import (\n    GaudiTrainer as T,  # short\n"
            "    GaudiTrainingArguments as A,\n    GaudiConfig as C,\n)\n",
            "T",
            "A",
            "C",
        )
    if form == 2:
        return "import optimum.habana as oh\n", "oh.GaudiTrainer", "oh.GaudiTrainingArguments", "oh.GaudiConfig"
    if form == 3:
        return (
            "from optimum import habana\n",
            "habana.GaudiTrainer",
            "habana.GaudiTrainingArguments",
            "habana.GaudiConfig",
        )
    if form == 4:
        lines = (
            "try:\n    from optimum.habana import GaudiTrainer, GaudiTrainingArguments, GaudiConfig\n    HAVE = True\n"
        )
        return (
            f"{lines}except ImportError:\n    HAVE = False\n",
            "GaudiTrainer",
            "GaudiTrainingArguments",
            "GaudiConfig",
        )
    return (
        "from optimum.habana.transformers.trainer import GaudiTrainer\n"
        "from optimum.habana.transformers.training_args import GaudiTrainingArguments\n"
        "from optimum.habana.transformers.gaudi_configuration import GaudiConfig\n",
        "GaudiTrainer",
        "GaudiTrainingArguments",
        "GaudiConfig",
    )


def program(seed: int) -> tuple[str, list[str], dict[str, str]]:
    """A program, the arguments in it that are no more, and its helper modules."""
    draw = random.Random(seed)
    head, trainer, arguments, config = imports(draw)
    gone = draw.sample(GONE, draw.randrange(1, 5))
    given = {name: VALUES.get(name, draw.choice(["True", "False", "flag"])) for name in gone} | {"seed": "3"}
    text = f"import os  # first\n{head}"
    text += (
        "from transformers import Trainer as Plain, TrainingArguments as PlainArguments\n\nflag = bool(os.environ)\n"
    )
    helpers: dict[str, str] = {}
    if draw.random() < 0.3:
        helpers["helper"] = (
            f"{head}\n\nclass Helped({trainer}):\n    def f(self):\n        return self.args.use_lazy_mode\n"
        )
        text += "from helper import Helped\n"
        trainer = "Helped"
    elif draw.random() < 0.3:
        text += f"class Own({trainer}):\n    def __init__(self, *args, **kwargs):\n"
        text += "        super().__init__(*args, **kwargs)\n"
        trainer = "Own"
    if draw.random() < 0.3:
        text += f"Kind = {trainer} if flag else Plain\n"
        trainer = "Kind"
    if draw.random() < 0.2:
        text += f"ArgumentsKind = {arguments} if flag else PlainArguments\n"
        arguments = "ArgumentsKind"
    if draw.random() < 0.2:
        text += f"class OwnArguments({arguments}):\n    warmup_ratio: float = 0.1\n    group_by_length: bool = True\n"
        arguments, gone = "OwnArguments", [*gone, "warmup_ratio", "group_by_length"]
    made = f"{config}(use_fused_adam=True)" if draw.random() < 0.5 else f"{config}.from_pretrained('folder')"
    text += f"setup = {made}\n"
    form = draw.randrange(6)
    keywords = ", ".join(f"{name}={value}" for name, value in given.items())
    pairs = ", ".join(f"'{name}': {value}" for name, value in given.items())
    if form == 0:
        text += f"run_args = {arguments}('out', {keywords})\n"
    elif form == 1:
        text += f"options = {{{pairs}}}\nrun_args = {arguments}('out', **options)\n"
    elif form == 2:
        text += f"options = dict({keywords})\nrun_args = {arguments}(output_dir='out', **options)\n"
    elif form == 3:
        text += f"def build(**kwargs):\n    return {arguments}('out', **kwargs)\n\n\nrun_args = build({keywords})\n"
    elif form == 4:
        text += f"from functools import partial\nmake = partial({arguments}, {keywords})\nrun_args = make('out')\n"
    else:
        text += f"run_args = {arguments}('out', **{{{pairs}}})\n"
    call = draw.choice(
        [
            "(model=m, gaudi_config=setup, args=run_args)",
            "(m, setup, run_args)",
            "(m, gaudi_config=setup, args=run_args)",
        ]
    )
    text += f"def main(m):\n    # the trainer\n    t = {trainer}{call}\n"
    text += "    if run_args.use_lazy_mode:\n        print(run_args.use_habana)\n    return t\n"
    return text, gone, helpers


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_a_mutated_program(first: int, tmp_path: Path) -> None:
    removed = {each.name for each in ARGUMENTS}
    for seed in range(first, first + 50):
        text, gone, helpers = program(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "program.py").write_text(text)
        for name, source in helpers.items():
            (folder / f"{name}.py").write_text(source)
        files = migrate(folder / "program.py")
        report = "\n".join(each.what for made in files for each in made.findings)
        assert [name for name in gone if name not in report] == [], (seed, text, report)
        for made in files:
            tree = ast.parse(made.after)
            left = {word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords}
            assert [
                name for name in left & (removed | {"gaudi_config"}) if f"{name}=" not in _of_a_person(made.left)
            ] == [], (seed, made.after)
            if re.search(r"^\s*(from|import) optimum", made.after, re.M):
                assert any("import" in each.what or "optimum.habana" in each.what for each in made.left), (
                    seed,
                    made.after,
                )
            assert "# first" in made.after or made.path.name != "program.py"
            made.path.write_text(made.after)
        assert [made for made in migrate(folder / "program.py") if made.before != made.after] == [], seed


def _of_a_person(left: list) -> str:  # type: ignore[type-arg]
    return "\n".join(each.what for each in left)
