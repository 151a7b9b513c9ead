"""Each rule of the rewriting, on a program of a few lines."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from gaudi3_migration import Migrated

Rewrite = Callable[..., Migrated]
IMPORT = "from optimum.habana import GaudiConfig, GaudiTrainer, GaudiTrainingArguments\n"


def lines(program: Migrated) -> str:
    """The program without comments and layout."""
    return ast.unparse(ast.parse(program.after))


#: A program, what it becomes without comments, and words of the report.
RULES: dict[str, tuple[str, str, list[str]]] = {
    "trainer and arguments": (
        f"{IMPORT}args = GaudiTrainingArguments('out', use_habana=True)\ntrainer = GaudiTrainer(model=m, args=args, tokenizer=t)\n",
        "from transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments('out', adam_epsilon=1e-06)\ntrainer = Trainer(model=m, args=args, processing_class=t)",
        ["adam_epsilon", "tokenizer=t: processing_class="],
    ),
    "an alias": (
        "from optimum.habana import GaudiTrainer as T\nT(model=m, gaudi_config=None, args=a)\n",
        "from transformers import Trainer as T\nT(model=m, args=a)",
        ["gaudi_config=None"],
    ),
    "a module": (
        "import optimum.habana as oh\noh.GaudiTrainer(m, None, a)\noh.utils.set_seed(3)\n",
        "from transformers import Trainer, set_seed\nTrainer(m, a)\nset_seed(3)",
        ["optimum.habana.GaudiTrainer" if False else "oh.GaudiTrainer", "the second argument"],
    ),
    "a name that is taken": (
        f"{IMPORT}class Trainer(GaudiTrainer):\n    pass\n",
        "from transformers import Trainer as GaudiTrainer, TrainingArguments\n\nclass Trainer(GaudiTrainer):\n    pass",
        ["transformers.Trainer"],
    ),
    "no device": (
        f"{IMPORT}a = GaudiTrainingArguments('out', use_habana=on, adam_epsilon=1e-5)\n",
        "from transformers import Trainer, TrainingArguments\na = TrainingArguments('out', use_cpu=not on, adam_epsilon=1e-05)",
        ["use_habana=on"],
    ),
    "arguments of transformers 4": (
        f"{IMPORT}a = GaudiTrainingArguments('out', adam_epsilon=1e-5, warmup_ratio=0.1, group_by_length=True, no_cuda=True)\n",
        "from transformers import Trainer, TrainingArguments\n"
        "a = TrainingArguments('out', adam_epsilon=1e-05, warmup_steps=0.1, train_sampling_strategy='group_by_length', use_cpu=True)",
        ["warmup_ratio=0.1", "group_by_length=True", "no_cuda=True"],
    ),
    "a dictionary": (
        f"{IMPORT}kw = {{'output_dir': 'o', 'use_lazy_mode': False, 'no_cuda': True}}\nkw['use_hpu_graphs'] = True\n"
        "a = GaudiTrainingArguments(**kw)\n",
        "from transformers import Trainer, TrainingArguments\nkw = {'output_dir': 'o', 'use_cpu': True}\na = TrainingArguments(**kw)",
        ["use_lazy_mode=False", "use_hpu_graphs=True", "adam_epsilon"],
    ),
    "a wrapper": (
        f"{IMPORT}def make(**kwargs):\n    return GaudiTrainingArguments('o', **kwargs)\na = make(use_lazy_mode=False, seed=1)\n",
        "from transformers import Trainer, TrainingArguments\n\ndef make(**kwargs):\n    return TrainingArguments('o', **kwargs)\na = make(seed=1)",
        ["use_lazy_mode=False"],
    ),
    "a conditional class": (
        f"{IMPORT}from transformers import Trainer as Plain\nKind = GaudiTrainer if on else Plain\nKind(model=m, gaudi_config=None, args=a)\n",
        "from transformers import Trainer, TrainingArguments\nfrom transformers import Trainer as Plain\n"
        "Kind = Trainer if on else Plain\nKind(model=m, args=a)",
        ["gaudi_config=None"],
    ),
    "partial": (
        f"from functools import partial\n{IMPORT}make = partial(GaudiTrainer, gaudi_config=None)\nmake(model=m)\n",
        "from functools import partial\nfrom transformers import Trainer, TrainingArguments\nmake = partial(Trainer)\nmake(model=m)",
        ["gaudi_config=None"],
    ),
    "lazy mode": (
        "import habana_frameworks.torch.core as htcore\nfor b in x:\n    b.step()\n    htcore.mark_step()\nif lazy:\n    htcore.mark_step()\n",
        "for b in x:\n    b.step()\nif lazy:\n    pass",
        ["htcore.mark_step()"],
    ),
    "what replaced classes": (
        "from optimum.habana.transformers.modeling_utils import adapt_transformers_to_gaudi\nadapt_transformers_to_gaudi()\nrun()\n",
        "run()",
        ["adapt_transformers_to_gaudi(): removed"],
    ),
    "the version": (
        "try:\n    from optimum.habana.utils import check_optimum_habana_min_version\nexcept ImportError:\n\n"
        "    def check_optimum_habana_min_version(*a):\n        return ()\ncheck_optimum_habana_min_version('1.19')\nrun()\n",
        "run()",
        ["there is no version to check"],
    ),
    "a pipeline": (
        "from optimum.habana.diffusers import GaudiStableDiffusionPipeline\n"
        "p = GaudiStableDiffusionPipeline.from_pretrained('m', use_habana=True, use_hpu_graphs=True, gaudi_config='c')\np('a', batch_size=4)\n",
        "from diffusers import StableDiffusionPipeline\np = StableDiffusionPipeline.from_pretrained('m').to('hpu')\np('a')",
        ["batch_size=4: no successor"],
    ),
    "an accelerator": (
        "from optimum.habana.accelerate import GaudiAccelerator\na = GaudiAccelerator(mixed_precision='bf16', force_autocast=True)\n",
        "from accelerate import Accelerator\na = Accelerator(mixed_precision='bf16')",
        ["force_autocast=True"],
    ),
    "attention": (
        f"{IMPORT}m = load('m', attn_implementation='gaudi_fused_sdpa')\n",
        "from transformers import Trainer, TrainingArguments\nm = load('m', attn_implementation='sdpa')",
        ["gaudi_fused_sdpa"],
    ),
    "what has moved": (
        f"{IMPORT}from transformers.utils import check_min_version, send_example_telemetry\nsend_example_telemetry('x')\n",
        "from transformers import Trainer, TrainingArguments\nfrom transformers.utils import check_min_version",
        ["send_example_telemetry('x'): removed"],
    ),
    "no successor": (
        "from optimum.habana.distributed import DistributedRunner\nDistributedRunner(x).run()\n",
        "from optimum.habana.distributed import DistributedRunner\nDistributedRunner(x).run()",
        ["no successor: start by torchrun"],
    ),
    "a star": (
        "from optimum.habana import *\nGaudiTrainer(m)\n",
        "from optimum.habana import *\nGaudiTrainer(m)",
        ["name what is imported"],
    ),
    "a name at run time": (
        "import importlib\noh = importlib.import_module('optimum.habana')\n",
        "import importlib\noh = importlib.import_module('optimum.habana')",
        ["look where it is imported by name"],
    ),
    "an unknown class": (
        f"{IMPORT}CLASSES = {{'hpu': GaudiTrainer}}\nCLASSES['hpu'](model=m, gaudi_config=c)\n",
        "from transformers import Trainer, TrainingArguments\nCLASSES = {'hpu': Trainer}\nCLASSES['hpu'](model=m, gaudi_config=c)",
        ["look what is called here"],
    ),
    "arguments from elsewhere": (
        f"{IMPORT}a = GaudiTrainingArguments(**json.load(f))\n",
        "from transformers import Trainer, TrainingArguments\na = TrainingArguments(**json.load(f))",
        ["**json.load(f): no successor"],
    ),
    "context parallel": (
        f"{IMPORT}a = GaudiTrainingArguments('o', context_parallel_size=4, adam_epsilon=1)\n",
        "from transformers import Trainer, TrainingArguments\na = TrainingArguments('o', adam_epsilon=1)",
        ["context_parallel_size=4: no successor"],
    ),
    "an attribute": (
        f"{IMPORT}a = GaudiTrainingArguments('o', adam_epsilon=1)\nif a.use_lazy_mode or a.use_habana:\n    run()\n",
        "from transformers import Trainer, TrainingArguments\na = TrainingArguments('o', adam_epsilon=1)\nif False or (not a.use_cpu):\n    run()",
        ["a.use_lazy_mode: False"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_rule(name: str, rewrite: Rewrite) -> None:
    program, expected, words = RULES[name]
    made = rewrite(program)
    assert lines(made) == ast.unparse(ast.parse(expected))
    report = "\n".join(f"{each.what}: {each.then}" for each in made.findings)
    assert [word for word in words if word not in report] == []


def test_every_change_of_meaning_has_a_comment(rewrite: Rewrite) -> None:
    made = rewrite(f"{IMPORT}a = GaudiTrainingArguments('o', fp8=True)\nt = GaudiTrainer(model=m, args=a)\n")
    changes = [each for each in made.findings if each.changes]
    assert len(changes) >= 3
    assert [each for each in changes if f"# migrate: {each.what}: {each.then}" not in made.after] == []


def test_comments_and_form_stay(rewrite: Rewrite) -> None:
    text = (
        "# Licence\n\n" + IMPORT + "\n\n# why\nx = [1,2,\n     3]  # odd\n\n# before\nadapt()\na = GaudiTrainingArguments(\n"
        "    'o',  # where\n    use_habana=True,\n    # own line\n    seed=3,  # behind\n)\n"
    )
    made = rewrite(text)
    for kept in ("# Licence\n", "# why\nx = [1,2,\n     3]  # odd\n", "# before\n", "    'o',  # where\n    # own line\n    seed=3,  # behind\n"):
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
    text = f"{IMPORT}c = GaudiConfig.from_pretrained(n)\nbf = c.use_torch_autocast\nt = GaudiTrainer(model=m, gaudi_config=c, args=a)\n"
    unknown = rewrite(text)
    assert [each.what for each in unknown.left] == ["GaudiConfig.from_pretrained(n)"]
    known = rewrite(text, '{"use_fused_adam": true, "use_torch_autocast": true}')
    assert known.left == []
    assert "from habana_frameworks.torch.hpex.optimizers import FusedAdamW" in known.after
    assert "optimizer_cls_and_kwargs=(FusedAdamW, {" in known.after and "bf = True" in known.after
    assert "GaudiConfig" not in lines(known)


def test_a_configuration_that_the_program_makes_is_known(rewrite: Rewrite) -> None:
    made = rewrite(f"{IMPORT}c = GaudiConfig()\nc.use_fused_adam = True\nt = GaudiTrainer(model=m, gaudi_config=c, args=a)\n")
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
