"""Each rule of the rewriting, on a program of a few lines."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gaudi3_migration import Migrated

Rewrite = Callable[..., Migrated]
IMPORT = "from optimum.habana import GaudiConfig, GaudiTrainer, GaudiTrainingArguments\n"


def lines(program: Migrated) -> str:
    """The program without comments and layout."""
    return ast.unparse(ast.parse(program.after))


RULES = yaml.safe_load(Path(__file__).with_name("rules.yml").read_text())


@pytest.mark.parametrize("name", RULES)
def test_a_rule(name: str, rewrite: Rewrite) -> None:
    rule = RULES[name]
    made = rewrite(rule["program"])
    assert lines(made) == ast.unparse(ast.parse(rule["becomes"]))
    report = "\n".join(f"{each.what}: {each.then}" for each in made.findings)
    assert [word for word in rule["report"] if word not in report] == []
    assert rewrite(made.after).after == made.after


def test_every_change_of_meaning_has_a_comment(rewrite: Rewrite) -> None:
    made = rewrite(f"{IMPORT}a = GaudiTrainingArguments('o', fp8=True)\nt = GaudiTrainer(model=m, args=a)\n")
    changes = [each for each in made.findings if each.changes]
    assert len(changes) >= 3
    assert [each for each in changes if f"# migrate: {each.what}: {each.then}" not in made.after] == []


def test_comments_and_form_stay(rewrite: Rewrite) -> None:
    text = (
        "# Licence\n\n"
        + IMPORT
        + "\n\n# why\nx = [1,2,\n     3]  # odd\n\n# before\nadapt()\na = GaudiTrainingArguments(\n"
        "    'o',  # where\n    use_habana=True,\n    # own line\n    seed=3,  # behind\n)\n"
    )
    made = rewrite(text)
    for kept in (
        "# Licence\n",
        "# why\nx = [1,2,\n     3]  # odd\n",
        "# before\n",
        "    'o',  # where\n    # own line\n    seed=3,  # behind\n",
    ):
        assert kept in made.after


def test_a_parser_gets_a_class_with_the_old_defaults_and_the_programs_own_fields(rewrite: Rewrite) -> None:
    made = rewrite(
        """
        from dataclasses import dataclass
        from transformers import HfArgumentParser
        from optimum.habana import GaudiTrainingArguments

        @dataclass
        class ModelArguments:
            use_cache: bool = True

        parser = HfArgumentParser((ModelArguments, GaudiTrainingArguments))
        model_args, run_args = parser.parse_args_into_dataclasses()
        if run_args.overwrite_output_dir and run_args.attn_implementation == "sdpa":
            pass
        """
    )
    assert "HfArgumentParser((ModelArguments, MigratedTrainingArguments))" in made.after
    for field in (
        "adam_epsilon: float = 1e-6", 'optim: str = "adamw_torch"', "overwrite_output_dir: bool = False",
        'attn_implementation: str = "eager"', "use_cache: object = dataclasses.field(default=False, init=False)",
    ):  # fmt: skip
        assert f"    {field}\n" in made.after
    assert {"overwrite_output_dir", "attn_implementation", "use_cache"} <= made.own


def test_the_gaudi_configuration_decides_about_the_optimizer(rewrite: Rewrite) -> None:
    text = f"{IMPORT}c = GaudiConfig.from_pretrained(n)\nbf = c.use_torch_autocast\n"
    text += "t = GaudiTrainer(model=m, gaudi_config=c, args=a)\n"
    unknown = rewrite(text)
    assert [each.what for each in unknown.left] == ["GaudiConfig.from_pretrained(n)"]
    known = rewrite(text, '{"use_fused_adam": true, "use_torch_autocast": true}')
    assert known.left == []
    assert "from habana_frameworks.torch.hpex.optimizers import FusedAdamW" in known.after
    assert "optimizer_cls_and_kwargs=(FusedAdamW, {" in known.after and "bf = True" in known.after
    assert "GaudiConfig" not in lines(known)


def test_a_function_that_imports_its_trainer_imports_the_optimizer_too(rewrite: Rewrite) -> None:
    text = "def main():\n    from optimum.habana import GaudiTrainer\n    GaudiTrainer(model=m, args=a)\n"
    made = rewrite(f"{text}\ndef other():\n    from optimum.habana.utils import set_seed\n", '{"use_fused_adam": true}')
    [main, other] = lines(made).split("\n\n")
    assert "from habana_frameworks.torch.hpex.optimizers import FusedAdamW" in main and "(FusedAdamW, {" in main
    assert "FusedAdamW" not in other


def test_own_fields_that_transformers_calls_otherwise_or_knows_no_more(rewrite: Rewrite) -> None:
    text = """@dataclass
class Own(GaudiTrainingArguments):
    warmup_ratio: float = field(default=0.03)
    group_by_length: bool = True
    use_lazy_mode: bool = False
"""
    made = rewrite(f"{IMPORT}{text}a = Own(warmup_ratio=0.1, use_lazy_mode=False)\n")
    assert "    warmup_steps: float = field(default=0.03)" in made.after
    assert "a = Own(warmup_steps=0.1, use_lazy_mode=False)" in lines(made)
    assert "warmup_ratio" not in made.own and "use_lazy_mode" in made.own
    [left] = made.left
    assert (left.line, left.what) == (5, "the field group_by_length")
    assert left.then == "transformers does not read it any more: train_sampling_strategy"
    # What reads the field goes on to do so, and a person decides.
    read = rewrite(f"{IMPORT}{text}a = Own()\nprint(a.warmup_ratio)\n")
    assert "warmup_ratio: float = field(default=0.03)" in read.after
    assert [each.what for each in read.left] == ["the field warmup_ratio", "the field group_by_length"]


@pytest.mark.parametrize(("trainer", "said"), [("SFT", True), ("DPO", False), ("GRPO", False)])
def test_a_loss_of_its_own_is_no_causal_models(trainer: str, said: bool, rewrite: Rewrite) -> None:
    text = f"""from optimum.habana.trl import Gaudi{trainer}Trainer
from transformers import AutoModelForCausalLM
m = AutoModelForCausalLM.from_pretrained("m")
t = Gaudi{trainer}Trainer(model=m, args=a)
"""
    assert ("the loss of a causal model" in [each.what for each in rewrite(text).findings]) is said


def test_a_trainer_that_takes_no_optimizer_gets_it_afterwards(rewrite: Rewrite) -> None:
    text = IMPORT.replace("GaudiTrainer,", "GaudiSeq2SeqTrainer,")
    made = rewrite(f"{text}t = GaudiSeq2SeqTrainer(model=m, args=a)\n", '{"use_fused_adam": true}')
    assert "t = Seq2SeqTrainer(model=m, args=a)\nt.optimizer_cls_and_kwargs = (FusedAdamW, {" in made.after


def test_an_optimizer_that_the_callers_give_is_asked_of_nobody(rewrite: Rewrite) -> None:
    text = "class Own(GaudiTrainer):\n    def __init__(self, *args, **kw):\n        super().__init__(*args, **kw)\n"
    made = rewrite(f"{IMPORT}{text}t = Own(model=m, args=a)\n", '{"use_fused_adam": true}')
    assert made.left == [] and "args=a, optimizer_cls_and_kwargs=(FusedAdamW, {" in made.after
    unpacked = rewrite(f"{IMPORT}t = GaudiTrainer(**given)\n", '{"use_fused_adam": true}')
    assert "use_fused_adam" in [each.what for each in unpacked.left]


def test_a_configuration_that_the_program_makes_is_known(rewrite: Rewrite) -> None:
    made = rewrite(
        f"{IMPORT}c = GaudiConfig()\nc.use_fused_adam = True\nt = GaudiTrainer(model=m, gaudi_config=c, args=a)\n"
    )
    assert made.left == [] and "optimizer_cls_and_kwargs" in made.after and "c." not in lines(made)


def test_helpers_in_the_same_folder_go_with_the_program(rewrite: Rewrite) -> None:
    helper = """
        from optimum.habana import GaudiTrainer

        class Own(GaudiTrainer):
            def __init__(self, *args, extra=None, **kwargs):
                super().__init__(*args, **kwargs)

            def evaluate(self):
                loop = self.prediction_loop if self.args.use_legacy_prediction_loop else self.evaluation_loop
                return loop(self.tokenizer)
    """
    made = rewrite("from helper import Own\nt = Own(model=m, gaudi_config=None, args=a, extra=1)\n", helper=helper)
    assert lines(made) == "from helper import Own\nt = Own(model=m, args=a, extra=1)"
    from gaudi3_migration import migrate

    _program, beside = migrate(made.path)
    assert "loop = self.evaluation_loop" in beside.after and "self.processing_class" in beside.after
    assert beside.left == []


@pytest.mark.parametrize(
    "text",
    [
        "from transformers import Trainer\nt = Trainer(model=m, tokenizer=t, args=a)  # tokenizer stays\n",
        "import torch\nx = {'use_habana': True}\n\n\ndef f(gaudi_config):\n    return gaudi_config.use_fused_adam\n",
        "class GaudiTrainer:\n    pass\nGaudiTrainer(gaudi_config=1)\n",
        "from other import GaudiTrainingArguments\nGaudiTrainingArguments(use_habana=True)\n",
        "",
    ],
)
def test_a_program_without_optimum_habana_is_not_touched(text: str, rewrite: Rewrite) -> None:
    made = rewrite(text)
    assert made.after == text and made.findings == []


def test_helpers_of_optimum_habana_become_lines_that_run(rewrite: Rewrite) -> None:
    made = rewrite(
        """
        from optimum.habana.utils import HabanaGenerationTime, HabanaProfile, to_gb_rounded, warn0, get_hpu_memory_stats
        from optimum.habana.transformers.trainer import _is_peft_model
        with HabanaGenerationTime() as timer:
            pass
        timer.step()
        size = to_gb_rounded(3 * 2**30)
        """
    )
    space: dict[str, object] = {}
    exec(compile(made.after, "program.py", "exec"), space)
    assert space["size"] == 3.0
    timer = space["timer"]
    assert timer.is_running() and timer.total_time() >= timer.last_duration >= 0  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"start\(\) comes before"):
        type(timer)().step()  # type: ignore[attr-defined]


def test_what_every_configuration_of_a_model_had_is_asked_for(rewrite: Rewrite) -> None:
    made = rewrite(
        """
        from optimum.habana import GaudiTrainer
        kind = config.model_type if config.tokenizer_class is None else config.tokenizer_class
        decodes = model.config.is_decoder
        model.config.tokenizer_class = "mine"
        model.config.prefix += "x"
        other = parser.prefix
        """
    )
    assert made.after.splitlines()[1:] == [
        'kind = config.model_type if getattr(config, "tokenizer_class", None) is None'
        ' else getattr(config, "tokenizer_class", None)',
        'decodes = getattr(model.config, "is_decoder", False)',
        'model.config.tokenizer_class = "mine"',
        'model.config.prefix += "x"',
        "other = parser.prefix",
    ]
    assert [(each.what, each.then) for each in made.findings if "config." in each.what] == [
        ("config.tokenizer_class", 'getattr(config, "tokenizer_class", None)'),
        ("model.config.is_decoder", 'getattr(model.config, "is_decoder", False)'),
    ]
