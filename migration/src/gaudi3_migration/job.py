"""A job of gaudi3-train out of a program and its command, where it fine-tunes a causal language model and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from gaudi3_migration.findings import Finding, Migrated
from gaudi3_migration.program import MigrationError

REFUSED = {
    "peft": "it trains adapters of peft (a job has model.lora)",
    "trl": "it trains by a method of trl",
    "diffusers": "it is about pictures",
    "sentence_transformers": "it trains embeddings",
}
MEANING: dict[str, tuple[str, type]] = {
    "model_name_or_path": ("model.name", str),
    "train_file": ("data.source", str),
    "output_dir": ("output_dir", str),
    "max_steps": ("train.max_steps", int),
    "per_device_train_batch_size": ("train.micro_batch_size", int),
    "gradient_accumulation_steps": ("train.accumulation_steps", int),
    "learning_rate": ("train.learning_rate", float),
    "weight_decay": ("train.weight_decay", float),
    "adam_epsilon": ("train.epsilon", float),
    "max_grad_norm": ("train.gradient_clip", float),
    "block_size": ("model.sequence_length", int),
    "warmup_steps": ("train.warmup_steps", int),
    "save_steps": ("checkpoint.every", int),
    "logging_steps": ("train.log_every", int),
    "seed": ("train.seed", int),
}
"""Options of the program, and the keys of a job that mean the same."""
NEEDED = ("model_name_or_path", "train_file", "output_dir", "max_steps", "block_size")
WITHOUT = ("do_train", "overwrite_output_dir", "use_habana", "use_lazy_mode", "gaudi_config_name", "bf16", "report_to")
"""Options that need no key."""
DEFAULTS: dict[str, Any] = {
    "train.micro_batch_size": 8,
    "train.learning_rate": 5e-5,
    "train.schedule": "linear",
    "train.final_learning_rate": 0.0,
    "train.betas": [0.9, 0.999],
    "train.epsilon": 1e-6,
    "train.weight_decay": 0.0,
    "train.seed": 42,
}
"""What optimum-habana's arguments are where none is given, and a job's defaults are not."""


def options(command: Sequence[str]) -> dict[str, str]:
    """The options of a command line by name; "True" for those without a value."""
    found: dict[str, str] = {}
    name = ""
    for word in command:
        if word.startswith("--"):
            name, equal, value = word[2:].partition("=")
            found[name] = value if equal else "True"
        elif name:
            found[name] = word
            name = ""
    return found


def job(files: Sequence[Migrated], command: Sequence[str]) -> str:
    """The job as YAML; MigrationError with the reason where the program is more than a plain fine-tuning."""
    program = files[0]
    if "AutoModelForCausalLM" not in program.before:
        raise MigrationError(
            f"{program.path} trains no causal language model (AutoModelForCausalLM): use --to transformers."
        )
    for package, reason in REFUSED.items():
        if f"import {package}" in program.before or f"from {package}" in program.before:
            raise MigrationError(f"{program.path} is no plain fine-tuning: {reason}; use --to transformers.")
    if len(files) > 1 or "(GaudiTrainer)" in program.before:
        raise MigrationError(f"{program.path} has a trainer class of its own: use --to transformers.")
    given = options(command)
    missing = [f"--{name}" for name in NEEDED if name not in given]
    if missing:
        raise MigrationError(
            f"a job needs {', '.join(missing)}: give the whole command of {program.path.name} behind --."
        )
    settings = dict(DEFAULTS)
    for name, value in given.items():
        if name in MEANING:
            key, kind = MEANING[name]
            try:
                settings[key] = kind(value)
            except ValueError:
                raise MigrationError(f"--{name} is {value!r}, which is no {kind.__name__}.") from None
            program.findings.append(Finding(0, f"--{name} {value}", f"{key}: {settings[key]}"))
        elif name in WITHOUT:
            program.findings.append(Finding(0, f"--{name}", "needs no key"))
        else:
            program.findings.append(Finding(0, f"--{name}", "no successor: see gaudi3-train config", "person"))
    settings["data.tokenizer"] = given.get("tokenizer_name", given["model_name_or_path"])
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    program.findings = [each for each in program.findings if not each.line]
    program.findings.append(Finding(0, "use_fused_adam", "a job has torch's AdamW", "likely"))
    return "---\n" + yaml.safe_dump(nested, sort_keys=True)
