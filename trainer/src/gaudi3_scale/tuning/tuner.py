"""The search itself: trials until there are enough, then the best against the job as it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.tuning import study_storage
from gaudi3_scale.tuning.final import FINALISTS, Final
from gaudi3_scale.tuning.fit_runner import FitRunner, kill_marked
from gaudi3_scale.tuning.space import PROCESSES, Space, plain
from gaudi3_scale.tuning.study import TuningStudy
from gaudi3_scale.tuning.study_options import Objective, Options, price_per_hour
from gaudi3_scale.tuning.trial import Outcome, Runner, Trial
from gaudi3_scale.tuning.trial_ratio import Ratio

Log = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What a search found."""

    values: dict[str, Any]
    """Of the keys of the space: the best trial's, or the job's own where those are not clearly better."""
    config: Path
    """The job with these values, as `gaudi3-train fit --config` takes it."""
    processes: int
    """Of the job."""
    best: dict[str, Any]
    """The record of the best trial."""
    ratio: Ratio | None
    """Best against default; None where the default is the best, or where they could not be compared."""
    verdict: str
    """In one sentence."""


class AutoTuner:
    """Searches the settings of a job by short trials of it; the first trial is the job as it is.

    Example:
        >>> import tempfile
        >>> from gaudi3_scale.config import load
        >>> from gaudi3_scale.tuning import AutoTuner, Options, Outcome
        >>> def made_up(trial, report):  # in place of real trials, which take minutes
        ...     return Outcome(tokens_per_second=100.0 + trial.config.data.prefetch, loss=3.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     options = Options(folder=Path(folder), trials=3, repeats=2)
        ...     tuner = AutoTuner(load(None), {"data.prefetch": [0, 2, 27]}, options, made_up)
        ...     found = tuner.tune(log=lambda line: None)
        >>> found.values, round(found.ratio.ratio, 3)
        ({'data.prefetch': 27}, 1.245)
    """

    def __init__(
        self,
        config: Config,
        space: Space | Mapping[str, Any] | None = None,
        options: Options | None = None,
        runner: Runner | None = None,
    ) -> None:
        """`space` is a mapping as `Space` takes it, or the default one; `runner` makes a trial, by default with `fit`.

        ConfigError if the search cannot be made; nothing is written before `tune`.
        """
        if not isinstance(config, Config):
            raise ConfigError(
                f"config is of type {type(config).__name__}: AutoTuner takes the settings of a job, as "
                "gaudi3_scale.config.load() gives them, which name the model and its data."
            )
        self.options = options or Options(folder=config.output_dir / "tuning")
        self.options.check(config)
        self.config = config
        processes = self.options.processes
        if space is None:
            space = Space.of(config, _device(config), processes)
        self.space = space if isinstance(space, Space) else Space(space, config, processes)
        self._run = runner or FitRunner(self.options, self.options.folder.resolve() / "data")

    def tune(self, log: Log = print) -> Result:
        """Make all trials that are left, and compare. TrainerError where not one trial kept all limits."""
        study_storage.import_optuna()
        try:
            self.options.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"The folder {self.options.folder} cannot be made ({error.strerror}): give another --study."
            ) from None
        with study_storage.membership(self.options.folder, self.options.join):
            study = TuningStudy(self.config, self.space, self.options)
            self._prepare(study)
            while True:
                while (trial := study.next()) is not None:
                    self._make(study, trial, log)
                if not study.wait():
                    break
            with study_storage.locked(self.options.folder / "comparison.lock"):
                return self._conclude(study, log)

    def _prepare(self, study: TuningStudy) -> None:
        done = self.options.folder / "prepared"
        with study_storage.locked(self.options.folder / "prepare.lock"):
            if isinstance(self._run, FitRunner) and not done.exists():
                self._run.prepare(self._trial(study, 0, self.space.default(), "trials/0000"))
                done.touch()

    def _trial(self, study: TuningStudy, number: int, values: dict[str, Any], folder: str) -> Trial:
        config, processes = self.space.apply(values, self.options.processes)
        # Absolute, since the job may change its folder.
        path = self.options.folder.resolve() / folder
        return Trial(number, path, config, processes, values, study.mark(number))

    def _make(self, study: TuningStudy, asked: Any, log: Log) -> None:
        """One trial, whatever comes of it."""
        number, values = asked.number, dict(asked.params)
        record: dict[str, Any] = {
            "number": number,
            "values": values,
            "owner": study_storage.owner(),
            "started_at": time.time(),
        }
        outcome = Outcome(state="killed", reason="the search was ended; it is made again")
        try:
            retried = asked.user_attrs.get("retry_of")
            if retried is not None:
                kill_marked(study.mark(retried))
            try:
                trial = self._trial(study, number, values, f"trials/{number:04d}")
            except ConfigError as error:
                outcome = Outcome(state="failed", reason=str(error))
            else:
                record |= {"processes": trial.processes, "folder": str(trial.folder)}
                with study_storage.beating(study.alive(number)):
                    outcome = self._run(trial, study.report(asked))
        finally:
            record = study.finish(asked, outcome, record)
        log(self._line(record))

    def _line(self, record: dict[str, Any]) -> str:
        changed = {k: v for k, v in record["values"].items() if v != self.space.default()[k]}
        words = " ".join(f"{key}={json.dumps(value)}" for key, value in changed.items()) or "the default"
        if record["state"] == "complete":
            return f"trial {record['number']}: {self._amount(record['value'])} with {words}"
        return f"trial {record['number']}: {record['state']} ({record['reason']}) with {words}"

    def _amount(self, value: float) -> str:
        if self.options.objective is Objective.tokens_per_currency:
            return f"{value:,.0f} tokens per {price_per_hour(self.config)[1]}"
        unit = "tokens/s" if self.options.objective is Objective.tokens_per_second else "s"
        return f"{value:,.4g} {unit}" if unit == "s" else f"{value:,.0f} {unit}"

    def _conclude(self, study: TuningStudy, log: Log) -> Result:
        best, own = study.best(), self.space.default()
        if best is None:
            raise TrainerError(
                f"Not one of {len(study.records())} trials could be used: {self.options.folder / 'trials.jsonl'} says "
                "why."
            )
        found: Ratio | None = None
        if study.is_default(best["values"]):
            verdict = "the default is the best of all trials"
        else:
            chosen, found = self._final(study, log)
            best = next(record for record in study.finalists() if record["values"] == chosen)
            verdict = _conclusion(found)
        values = best["values"] if found is not None and found.is_better else own
        config, processes = self.space.apply(values, self.options.processes)
        path = self.options.folder / "best.yml"
        head = f"# By gaudi3-train tune: {verdict}.\n"
        if processes > 1 or PROCESSES in self.space.parameters:
            head += f"# For {processes} process(es): --nproc-per-node={processes}\n"
        write_atomically(path, head + yaml.safe_dump(plain(config, {}), sort_keys=False))
        result = Result(values, path, processes, best, found, verdict)
        write_atomically(self.options.folder / "result.json", json.dumps(asdict(result), indent=1, default=str) + "\n")
        log(verdict)
        log(f"{path}: {json.dumps(values)}" if values != own else f"{path}: the job as it is")
        return result

    def _final(self, study: TuningStudy, log: Log) -> tuple[dict[str, Any], Ratio | None]:
        """The best values of all, and how they compare with the default."""

        def run(values: dict[str, Any], name: str) -> Outcome:
            trial = self._trial(study, -1, values, f"comparison/{name}")
            kill_marked(trial.mark)
            return self._run(trial, lambda step, value: False)

        final = Final(self.options.folder / "comparison.jsonl", run, study.value, self.options.maximise)
        best = final.choose([record["values"] for record in study.finalists(FINALISTS)])

        def tell(pair: int, new: float, old: float) -> None:
            log(f"pair {pair}: best {self._amount(new)}, default {self._amount(old)}")

        return best, final.compare(best, self.space.default(), self.options.repeats, tell)


def _conclusion(found: Ratio | None) -> str:
    if found is None:
        return "the best and the default could not be compared, as too many runs failed: the default is kept"
    if found.is_better:
        return f"the best is {found} times as good as the default"
    return f"no better than the default: {found} times as good, an interval that does not lie above 1"


def _device(config: Config) -> str:
    if config.device != "auto":
        return config.device
    from gaudi3_scale.hpu.device import first_available

    return first_available()
