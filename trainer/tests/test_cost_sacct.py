"""Chargeback of what Slurm's accounting knows, beside jobs with a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cost_bill import a_job
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.cost.chargeback import charges, together
from gaudi3_scale.cost.sacct import cards, read
from gaudi3_scale.errors import ConfigError

HEAD = "JobIDRaw|Account|State|ElapsedRaw|AllocTRES|WCKey"
ROWS = [
    "12|vision|COMPLETED|7200|billing=16,cpu=16,gres/gpu:gaudi3=8,gres/gpu=8,mem=64G,node=1|clip",
    "12.batch|vision|COMPLETED|7200|cpu=16,gres/gpu=8,node=1|",
    "13|nlp|CANCELLED by 1000|1800|cpu=8,gres/gpu=4,node=1|*",
    "14|nlp|NODE_FAIL|3600|cpu=8,gres/gpu=2,node=1|",
    "14|nlp|COMPLETED|1800|cpu=8,gres/gpu=2,node=1|",
    "15|nlp|COMPLETED|3600|cpu=8,node=1|",
]


@pytest.fixture
def november(tmp_path: Path) -> Path:
    path = tmp_path / "november.txt"
    path.write_text("\n".join([HEAD, *ROWS]) + "\n")
    return path


def test_cards_times_hours_times_the_price(november: Path) -> None:
    found = {each.job: each for each in read(november, 1.5, "USD")}
    assert {job: each.spent for job, each in found.items()} == {
        "slurm 12": 24.0,  # 8 cards, 2 hours; the type is counted within the whole, the step within its job
        "slurm 13": 3.0,
        "slurm 14": 4.5,  # both times that it ran
        "slurm 15": 0.0,  # without cards
    }
    one = found["slurm 12"]
    assert (one.team, one.project, one.state, one.parts["other"]) == ("vision", "clip", "finished", 24.0)
    assert (found["slurm 13"].project, found["slurm 13"].forecast) == ("(none)", 3.0)


def test_cards_of_types_alone_are_added_up() -> None:
    assert cards("cpu=8,gres/gpu:gaudi2=2,gres/gpu:gaudi3=4") == 6 and cards("gres/hpu=8,gres/gpux=1") == 0
    assert cards("gres/gpu=9,gres/gpu:a100=1,gres/gpu:gaudi3=8", "gres/gpu:gaudi3") == 8


def test_jobs_of_clusters_with_the_same_number_stay_apart(november: Path) -> None:
    rows = ["Cluster|" + HEAD, "hall-1|12|a|COMPLETED|3600|gres/gpu=8|", "hall-2|12|b|COMPLETED|3600|gres/gpu=4|"]
    november.write_text("\n".join(rows))
    found = [(each.job, each.team, each.spent) for each in read(november, 1, "USD")]
    assert found == [("slurm hall-1 12", "a", 8.0), ("slurm hall-2 12", "b", 4.0)]


def test_the_command_adds_both_up(november: Path, tmp_path: Path) -> None:
    status = {"state": "finished", "step": 4, "max_steps": 4}
    ours = a_job(tmp_path / "a", "vision", "clip", "1", status, projected=20)
    given = ["chargeback", str(ours), "--sacct", str(november), "--card-price", "1.5"]
    found = CliRunner().invoke(app, given)
    assert found.exit_code == 0, found.output
    assert [line.split()[:4] for line in found.output.splitlines()[1:]] == [
        ["nlp", "(none)", "3", "7.50"],
        ["vision", "clip", "2", "38.00"],
        ["all", "5", "45.50", "-"],
    ]


def test_another_name_of_the_cards_is_asked_for_and_jobs_are_never_charged_nothing_for_it(
    november: Path,
) -> None:
    november.write_text(november.read_text().replace("gres/gpu", "gres/hpu"))
    with pytest.raises(ConfigError, match=r"No job of .* has gres/gpu, and some have gres/hpu: name what counts"):
        read(november, 1.5, "USD")
    words = ["chargeback", "--sacct", str(november), "--card-price", "1.5", "--gres", "gres/hpu"]
    assert " 31.50 " in CliRunner().invoke(app, words).output


@pytest.mark.parametrize(
    "text, said",
    [
        ("Slurm accounting storage is disabled\n", "says that Slurm accounting storage is disabled: set accounting up"),
        ("", "has no column JobIDRaw, Account, State, ElapsedRaw, AllocTRES in its first line"),
        (HEAD + "\n12|a|b|COMPLETED|1|x|\n", "Line 2 of .* has 7 cells under 6 names"),
        (HEAD + "\n12|a|COMPLETED|01:00:00|x|\n", "Line 2 of .* has the ElapsedRaw '01:00:00'"),
        (HEAD + "\n12|a|COMPLETED|-5|x|\n", "Line 2 of .* has the ElapsedRaw '-5'"),
        (HEAD + "\n12|a|COMPLETED|1|x|\n12|b|COMPLETED|1|x|\n", "Line 3 of .* has job 12 of the account b, which is"),
    ],
)
def test_what_is_no_answer_of_sacct(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(ConfigError, match=said):
        read(tmp_path / "x.txt", 1, "USD")


def test_what_does_not_add_up(november: Path, tmp_path: Path) -> None:
    jobs = read(november, 1, "USD")
    with pytest.raises(ConfigError, match="are the same job: ask sacct for times that do not overlap"):
        together(jobs, read(november, 1, "USD"))
    ours = charges([a_job(tmp_path / "a", "nlp", "llama", "1", {})])
    with pytest.raises(ConfigError, match="is in EUR and that in"):
        together(ours, read(november, 1, "EUR"))
    with pytest.raises(ConfigError, match="sacct has no job in its files"):
        together([], [])


@pytest.mark.parametrize(
    "words, said",
    [
        ((), "No jobs are given"),
        (("--sacct", "none.txt"), "--sacct needs the price of a card for an hour"),
        (("x", "--card-price", "1"), "--card-price is for jobs of --sacct"),
        (("--sacct", "none.txt", "--card-price", "1"), "none.txt cannot be read"),
    ],
)
def test_wrong_requests(words: tuple[str, ...], said: str) -> None:
    found = CliRunner().invoke(app, ["chargeback", *words])
    assert isinstance(found.exception, ConfigError) and said in str(found.exception)
