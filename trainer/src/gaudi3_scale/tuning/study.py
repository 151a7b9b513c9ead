"""Optuna's study of a job's settings: which trial is next, what came of each, and what a killed search left."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Collection
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.tuning import study_storage
from gaudi3_scale.tuning.space import Choice, Space
from gaudi3_scale.tuning.study_options import Objective, Options, Pruner, price_per_hour
from gaudi3_scale.tuning.trial import Outcome, Report

RECORD, OWNER, JOB, RETRY, REPEAT = "record", "owner", "job", "retry_of", "repeat_of"
"""Attributes of trials and of the study."""
RETRIES = 3
"""Of a trial whose search was killed; one that kills its node every time is a failure."""
REPEATS = 3
"""Times that a combination is drawn again before a neighbour of the best is taken that was not tried."""


class TuningStudy:
    """The study in a folder. All that changes it happens under one lock, so that several processes agree."""

    def __init__(self, config: Config, space: Space, options: Options) -> None:
        """Make the study, or open the one that is there. ConfigError if that one is of something else."""
        self._optuna = study_storage.import_optuna()
        self._config, self._space, self._options = config, space, options
        self._lock = options.folder / "lock"
        with study_storage.locked(self._lock):
            self._study = self._optuna.create_study(
                storage=study_storage.open_storage(options.storage, options.folder),
                study_name="gaudi3-train",
                direction="maximize" if options.maximise else "minimize",
                pruner=self._pruner(),
                load_if_exists=True,
            )
            said, job = self._study.user_attrs.get(JOB), _job(config, space, options)
            if said is not None and said != job:
                raise ConfigError(
                    f"{options.folder} holds the study of another job, space, objective, limit or number of steps: "
                    "give another --study, or remove it."
                )
            self._study.set_user_attr(JOB, job)
            if not self._study.get_trials(deepcopy=False):
                self._study.enqueue_trial(space.default())

    def next(self) -> Any:
        """The next trial, which is this process's now; None if there is none, while others may still be at theirs."""
        with study_storage.locked(self._lock):
            self._clear()
            for _ in range(REPEATS + 1):
                trials = self._study.get_trials(deepcopy=False)
                known = {_key(each.params): each.number for each in trials if self._counts(each) and each.params}
                waiting = any(each.state.name == "WAITING" for each in trials)
                if not waiting and (len(known) >= self._options.trials or len(known) == self._space.size):
                    return None
                # With the number of the trial as seed, a search that was killed goes on as it would have.
                seed = self._options.seed * 100_003 + len(trials)
                self._study.sampler = self._optuna.samplers.TPESampler(
                    seed=seed,
                    n_startup_trials=min(8, max(3, self._options.trials // 3)),
                    multivariate=True,
                    # Several searches may work on one study: what another one tries just now counts as bad, so that no
                    # two try the same. A search that is alone has no other running trial, and is repeated exactly.
                    constant_liar=True,
                )
                trial = self._study.ask()
                values = self._suggest(trial)
                before = known.get(_key(values))
                if before is None:
                    trial.set_user_attr(OWNER, study_storage.owner())
                    self.alive(trial.number).parent.mkdir(parents=True, exist_ok=True)
                    self.alive(trial.number).touch()
                    return trial
                trial.set_user_attr(REPEAT, before)
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            near = self._near(known)
            if not near:
                return None
            self._study.enqueue_trial(random.Random(seed).choice(near))
        return self.next()

    def _near(self, known: Collection[str]) -> list[dict[str, Any]]:
        """Combinations that were not tried and differ from the best in as few keys as there are; none if all were."""
        best = self.best()
        middle = best["values"] if best is not None else self._space.default()
        found: dict[int, list[dict[str, Any]]] = {}
        for values in self._space.combinations():
            if _key(values) not in known:
                found.setdefault(sum(values[key] != middle[key] for key in values), []).append(values)
        return found[min(found)] if found else []

    def report(self, trial: Any) -> Report:
        """For the runner: tells Optuna, and asks it whether the trial is worth going on. The default always is."""

        def tell(step: int, value: float) -> bool:
            trial.report(value, step)
            return not self.is_default(trial.params) and bool(trial.should_prune())

        return tell

    def finish(self, trial: Any, outcome: Outcome, record: dict[str, Any]) -> dict[str, Any]:
        """Put down what came of a trial; the record, with value and state after the limits were looked at."""
        with study_storage.locked(self._lock):
            value, broken = self.value(outcome), self._broken(outcome)
            if outcome.state == "complete" and broken:
                outcome.state, outcome.reason = "infeasible", broken[0][0]
            record = {**record, **vars(outcome), "value": value}
            trial.set_constraint("limits", max((by for _, by in broken), default=0.0))
            trial.set_user_attr(RECORD, record)  # from here on, its result survives
            self._again(trial.number)
        return record

    def records(self) -> list[dict[str, Any]]:
        """Of all trials that ended, in their order."""
        return [record for each in self._study.get_trials(deepcopy=False) if (record := self._record(each)) is not None]

    def write(self) -> None:
        """Write trials.jsonl, a line for every trial."""
        text = "".join(json.dumps(record, default=str) + "\n" for record in self.records())
        write_atomically(self._options.folder / "trials.jsonl", text)

    def ranked(self) -> list[dict[str, Any]]:
        """The records of trials that keep all limits, the best first."""
        found = [record for record in self.records() if record["state"] == "complete"]
        return sorted(found, key=lambda record: record["value"], reverse=self._options.maximise)

    def best(self) -> dict[str, Any] | None:
        """The first of these; None if there is none."""
        return next(iter(self.ranked()), None)

    def finalists(self, count: int | None = None) -> list[dict[str, Any]]:
        """The best that are not the default."""
        return [record for record in self.ranked() if not self.is_default(record["values"])][:count]

    def default(self) -> dict[str, Any] | None:
        """The record of the job as it is; None while there is none."""
        found = [r for r in self.records() if r["state"] != "killed" and self.is_default(r["values"])]
        return found[0] if found else None

    def is_default(self, values: dict[str, Any]) -> bool:
        """Are they those of the job as it is?"""
        return _key(values) == _key(self._space.default())

    def wait(self, pause: Callable[[float], None] = time.sleep) -> bool:
        """Until no other process is at a trial; is there one to make again?"""
        while True:
            with study_storage.locked(self._lock):
                self._clear()
                states = [each.state.name for each in self._study.get_trials(deepcopy=False)]
            if "WAITING" in states or "RUNNING" not in states:
                return "WAITING" in states
            pause(1.0)

    def value(self, outcome: Outcome) -> float | None:
        """The objective's. For a loss that was not reached, the time limit."""
        if self._options.objective is Objective.time_to_loss:
            return self._options.time_limit if outcome.seconds_to_loss is None else outcome.seconds_to_loss
        speed = outcome.tokens_per_second
        if speed is None or self._options.objective is Objective.tokens_per_second:
            return speed
        return speed * 3600 / price_per_hour(self._config)[0]

    def alive(self, number: int) -> Any:
        """The file that a trial's process touches."""
        return self._options.folder / "trials" / f"{number:04d}" / "alive"

    def mark(self, number: int) -> str:
        """In the environment of a trial's processes."""
        return f"{self._options.folder.resolve()}:{number}"

    def _suggest(self, trial: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, each in self._space.parameters.items():
            if isinstance(each, Choice):
                found[key] = trial.suggest_categorical(key, list(each.values))
            elif each.whole:
                found[key] = trial.suggest_int(key, int(each.low), int(each.high), log=each.log)
            else:
                found[key] = trial.suggest_float(key, each.low, each.high, log=each.log)
        return found

    def _broken(self, outcome: Outcome) -> list[tuple[str, float]]:
        """Limits that were not kept: in words, and by which share."""
        limits, found = self._options.limits, []
        if limits.memory_gib is not None and (outcome.memory_gib or 0.0) > limits.memory_gib:
            words = f"it took {outcome.memory_gib:.2f} GiB, more than the limit of {limits.memory_gib:g}"
            found.append((words, (outcome.memory_gib or 0.0) / limits.memory_gib - 1))
        if self._options.objective is Objective.time_to_loss:
            if outcome.seconds_to_loss is None and outcome.state == "complete":
                found.append((f"it did not reach the loss {self._options.target_loss:g}, but {outcome.loss}", 1.0))
            return found
        first = self.default()
        first = first if first is not None and first["loss"] is not None else None
        bounds = [(limits.loss, "the limit of")]
        if limits.loss_tolerance is not None and first is not None:
            bounds.append((first["loss"] * (1 + limits.loss_tolerance), "what the default's and the tolerance allow,"))
        for bound, words in bounds:
            if bound is not None and (outcome.loss is None or outcome.loss > bound):
                by = 1.0 if outcome.loss is None else outcome.loss / bound - 1
                found.append((f"its loss of {outcome.loss} is more than {words} {bound:.4g}", by))
        return found

    def _clear(self) -> None:
        """Mark trials whose process is gone as failed, and have them made again."""
        for each in self._study.get_trials(deepcopy=False):
            if each.state.name != "RUNNING":
                continue
            if self._options.join and study_storage.is_alive(each.user_attrs.get(OWNER), self.alive(each.number)):
                continue
            self._again(each.number)

    def _again(self, number: int) -> None:
        """Have a trial made again whose process is gone, unless its result is there already."""
        trials = self._study.get_trials(deepcopy=False)
        record = trials[number].user_attrs.get(RECORD)
        if record is not None and record["state"] != "killed":
            self._tell(number, record)
            return
        values = trials[number].params or (self._space.default() if number == 0 else {})
        before, at = 0, trials[number]
        while at.user_attrs.get(RETRY) is not None:
            before, at = before + 1, trials[at.user_attrs[RETRY]]
        is_queued = any(each.user_attrs.get(RETRY) == number for each in trials)
        if values and before < RETRIES and not is_queued:
            self._study.enqueue_trial(values, user_attrs={RETRY: number})
        self._study.tell(number, state=self._optuna.trial.TrialState.FAIL, skip_if_finished=True)
        self.write()

    def _tell(self, number: int, record: dict[str, Any]) -> None:
        if record["state"] in ("complete", "infeasible") and record["value"] is not None:
            self._study.tell(number, record["value"], skip_if_finished=True)
        else:  # as a pruned one, which the sampler takes for a bad one; it does not learn from a failed one
            self._study.tell(number, state=self._optuna.trial.TrialState.PRUNED, skip_if_finished=True)
        self.write()

    def _counts(self, trial: Any) -> bool:
        """Is it one of the trials that are wanted, done or under way?"""
        record = trial.user_attrs.get(RECORD)
        if trial.state.name == "RUNNING":
            return True
        return record is not None and record["state"] != "killed"

    def _record(self, trial: Any) -> dict[str, Any] | None:
        record: dict[str, Any] | None = trial.user_attrs.get(RECORD)
        if record is not None or trial.state.name != "FAIL" or REPEAT in trial.user_attrs:
            return record if trial.state.is_finished() else None
        return {
            "number": trial.number,
            "state": "killed",
            "reason": "the process that made it ended; it is made again",
            "values": trial.params,
            "owner": trial.user_attrs.get(OWNER),
            "value": None,
            "loss": None,
        }

    def _pruner(self) -> Any:
        pruners, warm = self._optuna.pruners, self._options.warm_steps
        if self._options.pruner is Pruner.median:
            return pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=warm)
        if self._options.pruner is Pruner.hyperband:
            return pruners.HyperbandPruner(min_resource=warm, max_resource=self._options.steps)
        return pruners.NopPruner()


def _key(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _job(config: Config, space: Space, options: Options) -> str:
    """Digest of what makes trials comparable."""
    about: list[Any] = [
        config.model_dump(mode="json", exclude={"output_dir"}),
        space.describe(),
        options.objective.value,
    ]
    about += [options.target_loss, vars(options.limits), options.steps, options.processes]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
