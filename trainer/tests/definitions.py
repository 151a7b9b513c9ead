"""Whether the files of a wheel define an internal that the trainer uses; nothing of them is imported."""

from __future__ import annotations

import ast
import re
import zipfile

from gaudi3_scale.internals import Internal

HOMES = {
    ("torch", "nn.Module"): "torch/nn/modules/module.py",
    ("torch", "UntypedStorage"): "torch/storage.py",
    ("torch", "ops.aten"): "torch/_C/_VariableFunctions.pyi",
    ("torch.distributed.tensor", "DTensor"): "torch/distributed/tensor/_api.py",
    ("lightning.pytorch", "Trainer"): "lightning/pytorch/trainer/trainer.py",
    ("lightning.pytorch", "LightningModule"): "lightning/pytorch/core/module.py",
    ("lightning.pytorch.strategies", "DDPStrategy"): "lightning/pytorch/strategies/ddp.py",
    ("lightning.pytorch.strategies", "ModelParallelStrategy"): "lightning/pytorch/strategies/model_parallel.py",
}
"""Where a class is written that another module hands on."""


def missing(archive: zipfile.ZipFile, internal: Internal) -> bool:
    """Is it not there, or a function with other parameters?"""
    owner, _, name = internal.name.rpartition(".")
    path = HOMES.get((internal.module, owner)) or internal.module.replace(".", "/") + ".py"
    if path not in archive.namelist():
        return True
    text = archive.read(path).decode()
    if internal.parameters is None:
        return re.search(rf"\b{name}\b", text) is None
    tree: ast.AST = ast.parse(text)
    if owner:
        tree = next((n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == owner), ast.Module([], []))
    found = [node for node in ast.walk(tree) if getattr(node, "name", None) == name]
    made = [each for node in found if isinstance(node, ast.ClassDef) for each in node.body]
    wanted = {("self", *internal.parameters): made, internal.parameters: found}
    return not any(
        isinstance(node, ast.FunctionDef) and node.name in (name, "__init__") and _parameters(node) == parameters
        for parameters, nodes in wanted.items()
        for node in nodes
    )


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    every = function.args
    positional = [each.arg for each in (*every.posonlyargs, *every.args, every.vararg) if each]
    return (*positional, *(each.arg for each in (*every.kwonlyargs, every.kwarg) if each))
