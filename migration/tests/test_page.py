"""The table of the documentation has every name and every argument."""

from __future__ import annotations

from gaudi3_migration import table
from gaudi3_migration.arguments import ADDED, ARGUMENTS, CONFIG_KEYS
from gaudi3_migration.names import NAMES, PIPELINES, lookup


def test_every_row_is_on_the_page() -> None:
    page = table()
    names = [
        *(each.name for each in NAMES),
        *(each.name for each in ARGUMENTS),
        *CONFIG_KEYS,
        *ADDED,
        *(f"Gaudi{each}" for each in PIPELINES),
    ]
    assert [name for name in names if f"`{name}`" not in page] == []
    assert page.startswith("# ") and "1.21.2" in page and "5.23.0" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.count(" | ") for line in rows} <= {2, 3, 5}


def test_names_are_looked_up_by_module() -> None:
    llama = lookup("optimum.habana.transformers.models.llama.modeling_llama.GaudiLlamaDecoderLayer")
    assert llama is not None and llama.successor == "transformers.models.llama.modeling_llama.LlamaDecoderLayer"
    assert lookup("optimum.habana.utils") is None and lookup("transformers.Trainer") is None
    assert lookup("optimum.habana.GaudiConfig.from_pretrained") is None
    unknown = lookup("optimum.habana.GaudiNew")
    assert unknown is not None and unknown.kind == "none"


def test_no_two_rows_have_one_name() -> None:
    for rows in ([each.name for each in NAMES], [each.name for each in ARGUMENTS]):
        assert sorted(set(rows)) == sorted(rows)
