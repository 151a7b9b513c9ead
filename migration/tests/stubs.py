"""Modules of the names that programs import, which put down what they are given: to run programs before and after."""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any

import pytest

from gaudi3_migration.arguments import ARGUMENTS

MADE: list[dict[str, Any]] = []
"""What the trainers were given, the last at the end."""


def _arguments(name: str, removed: bool, epsilon: float) -> type:
    fields: list[tuple[str, type, Any]] = [
        ("output_dir", str, ""),
        ("seed", int, 42),
        ("adam_epsilon", float, epsilon),
        ("bf16", bool, False),
    ]
    if removed:
        fields += [(each.name, object, eval(each.default)) for each in ARGUMENTS]
    else:
        fields += [
            (each, object, None) for each in ("use_cpu", "warmup_steps", "learning_rate", "adam_beta1", "adam_beta2")
        ]
    return dataclasses.make_dataclass(name, [(a, b, dataclasses.field(default=c)) for a, b, c in fields])


class GaudiConfig:
    def __init__(self, **keys: bool) -> None:
        self.__dict__.update(keys)


class GaudiTrainer:
    def __init__(self, model: Any = None, gaudi_config: Any = None, args: Any = None) -> None:
        self.args = args
        MADE.append({"model": model, "args": args, "fused": getattr(gaudi_config, "use_fused_adam", False)})


class Trainer:
    def __init__(self, model: Any = None, args: Any = None, *, optimizer_cls_and_kwargs: Any = None) -> None:
        self.args = args
        MADE.append({"model": model, "args": args, "fused": optimizer_cls_and_kwargs is not None})


class HfArgumentParser:
    def __init__(self, classes: Any) -> None:
        self.classes = list(classes) if isinstance(classes, tuple | list) else [classes]

    def parse_dict(self, given: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(each(**given) for each in self.classes)

    def parse_args_into_dataclasses(self, args: list[str]) -> tuple[Any, ...]:
        pairs = {name.removeprefix("--"): value for name, value in zip(args[::2], args[1::2], strict=True)}
        typed = {name: {"True": True, "False": False, "3": 3}.get(value, value) for name, value in pairs.items()}
        return self.parse_dict(typed)


def install(monkeypatch: pytest.MonkeyPatch, habana: bool) -> None:
    """Let imports find the stand-ins; with `habana`, optimum-habana's among them."""
    old = _arguments("GaudiTrainingArguments", True, 1e-6)
    new = _arguments("TrainingArguments", False, 1e-8)
    plain = {"Trainer": Trainer, "TrainingArguments": new, "HfArgumentParser": HfArgumentParser}
    gaudi = {"GaudiTrainer": GaudiTrainer, "GaudiTrainingArguments": old, "GaudiConfig": GaudiConfig}
    modules: dict[str, dict[str, Any]] = {
        "transformers": plain,
        "habana_frameworks": {},
        "habana_frameworks.torch": {},
        "habana_frameworks.torch.core": {"mark_step": lambda: None},
        "habana_frameworks.torch.hpex": {},
        "habana_frameworks.torch.hpex.optimizers": {"FusedAdamW": object},
    }
    places = ("optimum.habana.transformers.trainer", "optimum.habana.transformers.training_args")
    places += ("optimum.habana.transformers.gaudi_configuration", "optimum.habana.transformers", "optimum.habana")
    for name in (*places, "optimum"):
        modules[name] = gaudi if name != "optimum" else {}
    for name, content in modules.items():
        made = types.ModuleType(name)
        made.__dict__.update(content)
        made.__path__ = []  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, made if habana or not name.startswith("optimum") else None)  # type: ignore[arg-type]
    for name in modules:
        parent, _, last = name.rpartition(".")
        if parent and sys.modules[parent] is not None:
            setattr(sys.modules[parent], last, sys.modules[name])


def run(source: str, helpers: dict[str, str], monkeypatch: pytest.MonkeyPatch, habana: bool) -> dict[str, Any]:
    """Run a program and its `main`, and give back what its trainer was given."""
    MADE.clear()
    with monkeypatch.context() as patch:
        install(patch, habana)
        for name, text in helpers.items():
            module = types.ModuleType(name)
            patch.setitem(sys.modules, name, module)
            exec(compile(text, f"{name}.py", "exec"), module.__dict__)
        space: dict[str, Any] = {"__name__": "program"}
        patch.setitem(sys.modules, "program", types.ModuleType("program"))
        exec(compile(source, "program.py", "exec"), space)
        space["main"]("the model")
    return MADE[-1]
