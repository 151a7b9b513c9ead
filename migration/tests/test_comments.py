"""Comments at what goes: each stays, wherever it stood."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gaudi3_migration import Migrated

Rewrite = Callable[..., Migrated]
IMPORT = "from optimum.habana import GaudiTrainer, GaudiTrainingArguments\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "('o',\n    use_habana=True,  # one\n    seed=3,  # two\n)",
            "('o',\n    # one\n    seed=3,  # two\n    adam_epsilon=1e-6,\n)",
        ),
        (
            "(\n    use_habana=True,  # one\n    # own\n    seed=3, adam_epsilon=1e-5)",
            "(\n    # one\n    # own\n    seed=3, adam_epsilon=1e-5)",
        ),
        (
            "(adam_epsilon=1e-5,  # zero\n    use_habana=True,  # one\n    use_lazy_mode=False,  # two\n)",
            "(adam_epsilon=1e-5,  # zero\n    # one\n    # two\n)",
        ),
        (
            "(adam_epsilon=1e-5, use_habana=True,  # one\n    seed=3)",
            "(adam_epsilon=1e-5,  # one\n    seed=3)",
        ),
        (
            "(\n    adam_epsilon=1e-5,\n    use_habana=True  # one\n)",
            "(\n    adam_epsilon=1e-5\n    # one\n)",
        ),
        (
            "(\n    adam_epsilon=1e-5,  # zero\n    use_habana=True)",
            "(\n    adam_epsilon=1e-5  # zero\n    )",
        ),
        (
            "(**{'adam_epsilon': 1e-5,\n    'use_habana': True,  # one\n    'use_lazy_mode': False,  # two\n})",
            "(**{'adam_epsilon': 1e-5,\n    # one\n    # two\n})",
        ),
        (
            "(**{  # zero\n    'use_habana': True,  # one\n    'seed': 3,  # two\n})",
            "(**{  # zero\n    # one\n    'seed': 3,  # two\n})",
        ),
    ],
)
def test_a_comment_behind_an_argument_that_goes_stays(before: str, after: str, rewrite: Rewrite) -> None:
    made = rewrite(f"{IMPORT}a = GaudiTrainingArguments{before}\n")
    assert f"TrainingArguments{after}\n" in made.after
    assert rewrite(made.after).after == made.after


def test_the_comment_of_a_second_argument_that_goes_stays(rewrite: Rewrite) -> None:
    made = rewrite(f"{IMPORT}t = GaudiTrainer(\n    m,\n    c,  # the configuration\n    a,\n)\n")
    assert "t = Trainer(\n    m,\n    # the configuration\n    a,\n)\n" in made.after


def test_the_comment_of_a_call_that_goes_stays(rewrite: Rewrite) -> None:
    made = rewrite(
        "from optimum.habana.transformers.modeling_utils import adapt_transformers_to_gaudi\n"
        "adapt_transformers_to_gaudi()  # before the model\nx = 1\n"
    )
    assert "# before the model\n" in made.after and "x = 1\n" in made.after
