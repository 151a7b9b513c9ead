"""The sections of a job that its own files know: training, where its time goes, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gaudi3_watch import view
from gaudi3_watch.causes import LABELS, PARTS
from gaudi3_watch.downsample import Points
from gaudi3_watch.job_files import JobFiles
from gaudi3_watch.view import Asked, Level, Line, View, duration, number

SILENT_SECONDS = 300
"""After which a job that says it runs is said to be silent."""
AHEAD_SECONDS = 60
"""By which a job's clock may be ahead of this one's until it is said: how long it is silent is not known then."""
NO_LEDGER = view.empty(
    "There is no goodput.jsonl with a readable line.", "Wait for the job's first step; fit writes it from there on."
)


def device_words(status: Mapping[str, Any]) -> str:
    """What the job's figures were measured on, for labels."""
    name = status.get("hardware_name")
    if status.get("simulated"):
        return "on the simulator"
    if status.get("device") == "hpu" and not name and status.get("simulated") is not False:
        return "on an hpu that is not known yet"
    return (
        f"on {view.text(name, 40)}" if name else f"on {view.text(status.get('device') or 'a device not known yet', 40)}"
    )


def state(status: Mapping[str, Any], now: float, is_unread: bool = False) -> View:
    """What the job does, in a word and a sentence; whether it has ended, and when it was heard of last.

    ``is_unread``: there is a status.json, and it cannot be read.
    """
    name = str(status.get("state") or "unknown")
    updated = status.get("updated_at")
    error = view.text(status.get("error") or status.get("interruption") or "", view.SENTENCE)

    def found(level: Level, sentence: str, ended: bool = False) -> View:
        return {"name": name, "level": level, "text": sentence, "ended": ended, "updated": updated}

    if name in ("running", "starting"):
        if updated is not None and now - updated > SILENT_SECONDS:
            return found("warn", f"No word for {duration(now - updated)}: see whether its process still runs.")
        if updated is not None and updated - now > AHEAD_SECONDS:
            ahead = duration(updated - now)
            return found(
                "warn", f"The job's clock is {ahead} ahead of this machine's: whether it still runs is not known."
            )
        return found("good", "The job runs." if name == "running" else "The job starts.")
    if name == "finished":
        return found("good", "The job has ended: it has made all its steps.", True)
    if name == "failed":
        return found("bad", f"The job has ended by a failure: {error or 'it gives no reason; see its log'}", True)
    if name == "interrupted":
        said = f"The job was interrupted: {error or 'no reason is known'}. It goes on when it is started again."
        return found("warn", said, True)
    if name == "spare":
        return found("good", "A spare node of the job: it waits for another one to leave.")
    if is_unread:
        return found("warn", "What the job does is not known: its status.json cannot be read.")
    return found("warn", "There is no status.json: the job has not begun, or this is not its folder.")


def training(status: Mapping[str, Any], files: JobFiles, asked: Asked, span: tuple[float, float]) -> View:
    """Loss, held-out loss, speed and step time."""
    if not status and not len(files.metrics):
        why = view.empty(
            "This folder has no status.json and no metrics.jsonl that can be read.",
            "Give the output_dir of a job, or wait until it has made its first step.",
        )
        return view.section("training", "Training", none=why)
    unit = "nats per token"
    measured, where = files.metrics, device_words(status)

    def line(label: str, column: str) -> Line:
        return Line(label, measured.points(column, *span, asked.width))

    held_out = files.evaluations.points("validation_loss", *span, asked.width)
    losses = [line("training loss", "loss"), Line("held-out loss", held_out)]
    baseline = status.get("baseline_loss")
    if baseline is not None and not losses[0].points.is_empty:
        ends = [losses[0].points.x[0], losses[0].points.x[-1]]
        losses.append(Line("baseline", Points(ends, [baseline] * 2, [baseline] * 2, [baseline] * 2)))
    charts = [
        view.chart("loss", "Loss", unit, losses),
        view.chart("speed", f"Tokens per second, {where}", "tokens/s", [line("tokens/s", "tokens_per_second")]),
        view.chart(
            "step",
            f"Time of a step, {where}",
            "s, with checkpoints and evaluations",
            [line("seconds per step", "step_seconds")],
        ),
        view.chart("gradient", "Gradient norm", "", [line("gradient norm", "gradient_norm")]),
    ]
    rows = {
        "device": f"{status.get('hardware_name') or status.get('device') or ''}"
        + (" (simulated)" if status.get("simulated") else ""),
        "processes": status.get("world_size"),
        "precision": status.get("precision"),
        "weights from": status.get("weights"),
        "resumed from step": status.get("resumed_from_step"),
        "newest checkpoint": status.get("checkpoint"),
        "checkpoint error": status.get("checkpoint_error"),
        "upload error": status.get("upload_error"),
        "last anomaly": anomaly(status),
        "last hang": hang(status),
        "software": ", ".join(f"{key} {value}" for key, value in (status.get("software") or {}).items()),
    }
    about = view.table("about", "About the job", ("what", "value"), view.settings(rows))
    return view.section("training", "Training", _training_tiles(status, files, where), charts, [about])


def anomaly(status: Mapping[str, Any]) -> str:
    """The last anomaly in a few words."""
    found = status.get("anomaly") or {}
    return ", ".join(f"{key} {value}" for key, value in found.items() if key in ("kind", "step", "rank", "message"))


def hang(status: Mapping[str, Any]) -> str:
    """Who held up the others when the job hung last, by its own words; empty where it did not."""
    found = status.get("hang")
    said = found.get("sentence") if isinstance(found, dict) else None
    return said if isinstance(said, str) else ""


def _training_tiles(status: Mapping[str, Any], files: JobFiles, where: str) -> list[View]:
    step, steps = status.get("step"), status.get("max_steps")
    share = step / steps if step is not None and steps else None
    loss, first = files.metrics.latest("loss") or status.get("loss"), status.get("first_loss")
    held_out = status.get("validation_loss") or files.evaluations.latest("validation_loss")
    seconds = files.metrics.latest("step_seconds")
    left = (steps - step) * seconds if seconds and step is not None and steps and step < steps else None
    skipped = status.get("skipped_steps") or 0
    speed, mfu = status.get("tokens_per_second"), status.get("mfu")
    tiles = [
        view.tile("Step", number(step, 15), f"of {number(steps, 15)}", share=share),
        view.tile("Loss", number(loss), f"from {number(first)}" if first is not None else ""),
        view.tile("Held-out loss", number(held_out), "" if held_out is not None else "no evaluation yet"),
        view.tile("Tokens per second", number(speed), where),
        view.tile("Time of a step", duration(seconds), where),
    ]
    if left and status.get("state") == "running":
        tiles.append(view.tile("Left at this pace", duration(left), where))
    if mfu is not None and "simulator" not in where and "not known" not in where:
        tiles.append(view.tile("MFU", f"{number(100 * mfu, 3)} %", where))
    if skipped:
        tiles.append(view.tile("Skipped steps", number(skipped, 15), "loss or gradients were not finite", "warn"))
    if files.not_finite:
        tiles.append(view.tile("Gaps", number(files.not_finite, 15), "logged losses that are not finite", "warn"))
    return tiles


def time_spent(
    status: Mapping[str, Any], files: JobFiles, asked: Asked, span: tuple[float, float], marks: Sequence[View]
) -> View:
    """Goodput by cause."""
    seconds, ratio, restarts = _account(status, files)
    if not seconds:
        return view.section("goodput", "Where the time goes", none=NO_LEDGER)
    whole = sum(seconds.values())
    tiles = [
        view.tile("Goodput", f"{number(100 * ratio, 3)} %", "of the time went into steps that were kept", share=ratio),
        view.tile("Since the first start", duration(whole)),
        view.tile("Restarts", number(restarts, 15)),
    ]
    lines = [Line(LABELS[part], files.parts.points(part, *span, asked.width)) for part in PARTS]
    charts = [view.chart("parts", "Share of the time since the first start", "%", lines, NO_LEDGER, kind="stack")]
    rows = [
        [
            LABELS.get(part, view.text(part, 40)),
            duration(each),
            f"{number(100 * each / whole, 3)} %" if whole else "",
            PARTS.get(part, ""),
        ]
        for part, each in sorted(seconds.items(), key=lambda pair: -pair[1])
    ]
    causes = view.table("causes", "By cause", ("cause", "time", "share", "what it is"), rows, (1, 2))
    tables = [causes, *what_if(files), view.happened(marks)]
    return view.section("goodput", "Where the time goes", tiles, charts, tables)


def what_if(files: JobFiles) -> list[View]:
    """What the job would have taken without each cause, in the words of `gaudi3-train goodput --what-if`."""
    from gaudi3_scale.cost import what_if_show as words

    found = files.what_if()
    if not any(words.without(cause, found) for cause in found.causes):
        return []
    rows = [
        [
            view.text(cause.name),
            duration(cause.nanoseconds / 1e9),
            f"{number(100 * cause.nanoseconds / found.nanoseconds, 3)} %" if found.nanoseconds else "",
            *([] if found.currency is None else [words.amount(cause.money or 0.0, found.money or 0.0)]),
            view.text(words.without(cause, found)),
            words.meaning(cause),
        ]
        for cause in found.causes
    ]
    money = [] if found.currency is None else [view.text(found.currency, 12)]
    columns = ("cause", "time", "share", *money, "without it", "what it is")
    note = " ".join(words.notes(found))
    return [
        {
            **view.table("what-if", "What if", columns, rows, range(1, len(columns) - 1)),
            "note": view.text(note, view.SENTENCE),
        }
    ]


def _account(status: Mapping[str, Any], files: JobFiles) -> tuple[dict[str, float], float, int]:
    """Seconds by part, goodput and restarts: of status.json, which is newer, else of the ledger."""
    said = status.get("goodput")
    if isinstance(said, dict) and isinstance(said.get("seconds"), dict):
        seconds = {str(k): float(v) for k, v in said["seconds"].items() if isinstance(v, int | float)}
        ratio, restarts = said.get("ratio"), said.get("restarts")
        if seconds and isinstance(ratio, int | float):
            return seconds, float(ratio), restarts if isinstance(restarts, int) else 0
    found = files.goodput()
    if not found.runs:
        return {}, 0.0, 0
    return {part: ns / 1e9 for part, ns in found.nanoseconds.items()}, found.ratio, found.runs - 1


def cost(status: Mapping[str, Any], files: JobFiles, asked: Asked, span: tuple[float, float]) -> View:
    """Money against the budget."""
    said: dict[str, Any] = status.get("cost") or {}
    spent = said.get("spent")
    currency = view.text(said.get("currency") or "", 12)
    if not isinstance(spent, int | float):
        known = files.spent
        if known is None:
            why = view.empty(
                "No price is set for this job.",
                "Set cost.node_price_per_hour, price_source and price_date in its configuration.",
            )
            return view.section("cost", "Cost", none=why)
        spent, currency = known.total, known.currency
    simulated = " The job ran on the simulator: this is no cost of a Gaudi." if status.get("simulated") else ""
    budget, left = said.get("budget"), said.get("budget_left")
    tiles = [view.tile("Spent", f"{number(spent, 6)} {currency}", simulated)]
    lines = [Line("spent", files.parts.points("spent", *span, asked.width))]
    if isinstance(budget, int | float) and budget > 0:
        share = spent / budget
        level: Level = "bad" if share >= 1 else "warn" if share >= 0.8 else "good"
        remaining = number(left if isinstance(left, int | float) else budget - spent, 6)
        tiles.append(view.tile("Budget", f"{number(budget, 6)} {currency}", f"{remaining} left", level, share))
        if lines[0].points.x:
            ends = [lines[0].points.x[0], lines[0].points.x[-1]]
            lines.append(Line("budget", Points(ends, [budget] * 2, [budget] * 2, [budget] * 2)))
    pace = _forecast(status, float(spent), budget)
    if pace:
        tiles.append(view.tile("At this pace", f"{number(pace[0], 6)} {currency}", pace[1], pace[2]))
    per_million = said.get("per_million_tokens")
    if isinstance(per_million, int | float):
        tiles.append(view.tile("Per million tokens", f"{number(per_million)} {currency}", device_words(status)))
    parts = said.get("parts") if isinstance(said.get("parts"), dict) else {}
    rows = [
        [LABELS.get(str(part), view.text(part, 40)), f"{number(value, 6)} {currency}"]
        for part, value in (parts or {}).items()
        if isinstance(value, int | float)
    ]
    about = {
        "price per hour": said.get("price_per_hour"),
        "source": said.get("price_source"),
        "date": said.get("price_date"),
        "team": said.get("team"),
        "project": said.get("project"),
    }
    tables = [
        view.table("money", "By cause", ("cause", "money"), rows, (1,)),
        view.table("terms", "Terms", ("what", "value"), view.settings(about)),
    ]
    return view.section("cost", "Cost", tiles, [view.chart("spent", "Money spent", currency, lines)], tables)


def _forecast(status: Mapping[str, Any], spent: float, budget: Any) -> tuple[float, str, Level] | None:
    """What the whole job will have cost if it goes on like this."""
    step, steps = status.get("step"), status.get("max_steps")
    if not step or not steps or step >= steps:
        return None
    whole = spent * steps / step
    if isinstance(budget, int | float) and whole > budget > 0:
        return whole, "for all steps: more than the budget", "warn"
    return whole, "for all steps", ""


def problems(files: JobFiles) -> list[View]:
    """What is wrong with the files themselves, a sentence each."""
    found: list[View] = []
    for file in files.files:
        name = file.path.name
        if file.error:
            found.append(view.problem(f"{name} cannot be read: {file.error}."))
        if file.malformed:
            count = f"{number(file.malformed, 15)} of {number(file.lines, 15)} lines"
            said = f"{name} has {count} that cannot be read; line {file.first_malformed} is the first:"
            found.append(view.problem(said, file.sample))
    if files.clock_steps:
        often = "once" if files.clock_steps == 1 else f"{number(files.clock_steps, 15)} times"
        found.append(view.problem(f"The clock was set back {often}: points stand at the last time before."))
    if files.ledger_is_cut:
        found.append(view.problem("goodput.jsonl has more lines than are read: its account ends early."))
    if files.share_read < 1:
        found.append(
            view.problem(f"The files are long: {number(100 * files.share_read, 3)} % of them is read so far.", level="")
        )
    return found
