"""The command `gaudi3-train tune`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.config import load
from gaudi3_scale.tuning.study_options import Limits, Objective, Options, Pruner, StudyStorage


def tune(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings over the file's, keys dotted.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file of the job.")] = None,
    study: Annotated[Path | None, typer.Option(help="Folder of the study; without it, tuning/ in output_dir.")] = None,
    space: Annotated[
        Path | None, typer.Option(help="YAML file: for each key a list of values, or low and high; else a default.")
    ] = None,
    objective: Annotated[
        Objective, typer.Option(help="What to improve; tokens_per_currency needs cost.node_price_per_hour.")
    ] = Objective.tokens_per_second,
    target_loss: Annotated[float | None, typer.Option(help="For time_to_loss: the training loss to reach.")] = None,
    max_memory_gib: Annotated[float | None, typer.Option(min=0, help="Largest memory of a process, in GiB.")] = None,
    max_loss: Annotated[float | None, typer.Option(help="Largest loss after a trial's last step.")] = None,
    loss_tolerance: Annotated[
        float, typer.Option(min=0, help="Share by which a trial's loss may exceed the default's.")
    ] = 0.05,
    trials: Annotated[int, typer.Option(help="Trials in all, over all restarts and nodes.")] = 20,
    steps: Annotated[int, typer.Option(help="Optimizer steps of a trial; the first quarter is not measured.")] = 40,
    time_limit: Annotated[float, typer.Option(help="Seconds after which a trial is ended.")] = 600.0,
    processes: Annotated[int, typer.Option(help="Processes of each trial, on this node.")] = 1,
    storage: Annotated[
        StudyStorage, typer.Option(help="Of the study; journal may be shared by nodes.")
    ] = StudyStorage.journal,
    pruner: Annotated[Pruner, typer.Option(help="Which trials are ended early.")] = Pruner.median,
    repeats: Annotated[int, typer.Option(help="Runs of each of best and default at the end, in turn.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    join: Annotated[
        bool, typer.Option("--join", help="Work on the study with other processes, of this or other nodes.")
    ] = False,
) -> None:
    """Search the settings with which this job is fastest or cheapest: short trials, each a real `fit`.

    Killed and started again, it goes on. The result is best.yml in the study's folder; trials.jsonl has every trial.
    Exit codes: 0 done, 1 no trial could be used, 2 a wrong configuration, space or option.
    """
    settings = load(config, overrides or ())
    options = Options(
        folder=study or settings.output_dir / "tuning",
        objective=objective,
        target_loss=target_loss,
        limits=Limits(max_memory_gib, max_loss, loss_tolerance),
        trials=trials,
        steps=steps,
        time_limit=time_limit,
        processes=processes,
        storage=storage,
        pruner=pruner,
        repeats=repeats,
        seed=seed,
        join=join,
    )
    options.check(settings)
    if os.environ.get("LOCAL_RANK", "0") != "0":  # under a launcher with several processes: one search per node
        return
    from gaudi3_scale.tuning.space import Space
    from gaudi3_scale.tuning.tuner import AutoTuner

    wanted = Space.read(space, settings, processes) if space is not None else None
    AutoTuner(settings, wanted, options).tune(typer.echo)
