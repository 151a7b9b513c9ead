"""Comments at what goes: each stays, wherever it stood."""

from __future__ import annotations

import re
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
            "(\n    'o',\n    use_habana=True,  # one\n)",
            "(\n    'o',\n    adam_epsilon=1e-6,\n)",
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from optimum.habana import (  # zero\n    # one\n    GaudiTrainer,  # two\n"
            "    GaudiTrainingArguments  # three\n    # four\n)  # five\n",
            "# zero\n# one\n# two\n# three\n# four\nfrom transformers import Trainer, TrainingArguments  # five\n",
        ),
        (
            "from optimum.habana import (  # noqa: E402\n    GaudiTrainer,  # two\n)\n",
            "# two\nfrom transformers import Trainer  # noqa: E402\n",
        ),
        (
            "from transformers.utils import (\n    check_min_version,  # kept\n"
            "    send_example_telemetry,  # gone\n)\n",
            "from transformers.utils import (\n    check_min_version,  # kept\n",
        ),
        (
            "from optimum.habana.distributed import (\n    DistributedRunner,  # kept\n)\n",
            "from optimum.habana.distributed import (\n    DistributedRunner,  # kept\n)\n",
        ),
        (
            "from optimum.habana.transformers.modeling_utils import (\n"
            "    adapt_transformers_to_gaudi,  # models\n)\nx = 1\n",
            "# models\nx = 1\n",
        ),
        (
            "from optimum.habana import GaudiConfig\n"
            "c = GaudiConfig.from_pretrained(\n    'folder',  # by name\n)\nx = 1\n",
            "# by name\n",
        ),
    ],
)
def test_comments_within_a_statement_whose_place_another_takes_stay(before: str, after: str, rewrite: Rewrite) -> None:
    made = rewrite(before).after
    assert after in made
    assert sorted(set(re.findall("# [a-z]+", before))) == sorted(
        text for text in re.findall("# [a-z]+", made) if text != "# migrate"
    )
    assert rewrite(made).after == made


def test_a_comment_within_a_value_is_no_part_of_what_is_written_for_it(rewrite: Rewrite) -> None:
    made = rewrite(f"{IMPORT}a = GaudiTrainingArguments('o', use_habana=(\n    x  # one\n    or y), adam_epsilon=1)\n")
    assert "# one\n" in made.after and "use_cpu=not (" in made.after
