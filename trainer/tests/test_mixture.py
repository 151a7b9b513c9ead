"""Several sources in fixed proportions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.config import load
from gaudi3_scale.data import Mixture, RankBatches, Samples, collect_all, identity
from gaudi3_scale.data.mixture import Turns
from gaudi3_scale.errors import ConfigError


@pytest.mark.parametrize("weights", [(1,), (0.7, 0.2, 0.1), (5, 3, 3, 1), (0.001, 0.999), (0.33, 0.33, 0.34), (1, 90)])
def test_shares_are_exact_within_one_sample_at_any_point(weights: tuple[float, ...]) -> None:
    turns = Turns(weights)
    count = 2 * turns.period + 17
    sources, numbers = turns.at(np.arange(count))
    exact = [Fraction(str(weight)) for weight in weights]
    for source, weight in enumerate(exact):
        had = np.cumsum(sources == source)
        share = weight / sum(exact)
        wanted = np.arange(1, count + 1) * share.numerator
        assert (abs(had * share.denominator - wanted) < share.denominator).all()
        assert numbers[sources == source].tolist() == list(range(int(had[-1])))  # none twice, none left out


def test_weights_that_never_repeat_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"proportions repeat after 1,000,000 samples .*: round them\.$"):
        Turns((0.333333, 0.666667))


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mixture, Samples]:
    """Three parts of a, one of b; of b there is little."""
    folder = tmp_path_factory.mktemp("mixture")
    for letter, lines in (("a", 900), ("b", 60)):
        (folder / letter).write_text((letter * 15 + "\n") * lines)
    config = load(
        None, [f"data.mixture=[{{source: {folder}/a, weight: 0.75}}, {{source: {folder}/b, weight: 0.25}}]"]
    ).data
    found = collect_all(config, folder / "data")
    assert isinstance(found, Mixture)
    return found, Samples(found, config, 16, 3)


def test_a_job_sees_the_sources_by_their_weights(mixture: tuple[Mixture, Samples]) -> None:
    samples = mixture[1]
    rows = torch.cat(list(itertools.islice(RankBatches(samples, 0, 8, 0, 1), 40)))
    of_b = torch.cumsum((rows == ord("b")).any(1), 0)
    assert ((of_b - torch.arange(1, 321) / 4).abs() < 1).all() and int(of_b[-1]) == 80
    held_out = samples.fetch(samples.order.validation(8))
    assert int((held_out == ord("b")).any(1).sum()) == 2


def test_any_position_and_any_number_of_ranks_give_the_same(mixture: tuple[Mixture, Samples]) -> None:
    samples = mixture[1]
    whole = torch.cat(list(itertools.islice(RankBatches(samples, 0, 8, 0, 1), 9)))
    ranks = [itertools.islice(RankBatches(samples, 40, 2, rank, 4), 4) for rank in range(4)]
    shared = torch.cat([batch for step in zip(*ranks, strict=True) for batch in step])
    assert torch.equal(whole[40:72], shared)


def test_its_identity_is_of_parts_and_weights(mixture: tuple[Mixture, Samples]) -> None:
    found = mixture[0]
    other = Mixture(found.parts, (0.5, 0.5))
    assert identity(found) != identity(other) and found.sha256 != other.sha256
    assert found.size == sum(part.size for part in found.parts)
    assert [part["weight"] for part in identity(found)["mixture"]] == [0.75, 0.25]
    assert found.source.startswith("75 % ")


def test_a_vocabulary_is_trained_on_all_sources_of_a_mixture(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("parrot " * 9)
    (tmp_path / "b.jsonl").write_text('{"prompt": "monkey", "completion": " monkey"}\n' * 9)
    mixture = f"[{{source: {tmp_path}/a.txt, weight: 1}}, {{source: {tmp_path}/b.jsonl, weight: 1, content: prompt}}]"
    to = tmp_path / "tokenizer.json"
    done = CliRunner().invoke(app, ["tokenizer", f"--to={to}", "--vocab-size=280", f"data.mixture={mixture}"])
    assert done.exit_code == 0, done.output
    tokenizer = Tokenizer.from_file(str(to))
    assert all(len(tokenizer.encode(word).ids) < 4 for word in ("parrot", "monkey"))
    assert len(tokenizer.encode("prompt").ids) > 4
