# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The pair search on nodes: what each of them calls in a round, and what the answers say of the round's jobs.

A job is one ``hccl_demo`` over all cards of its nodes, called on each of them with the address of the first:
``all2all`` inside of a group, ``send_recv`` between two groups, card by card. Options and the two-node call are those
of the program's own page (https://github.com/HabanaAI/hccl_demo, README.md and run_hccl_demo.py of f623d69).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._printable import printable
from .._refusal import Refusal
from .actions import ERROR, ISOLATE, WARNING, WATCH
from .fleet import outliers
from .pairs import Job, SearchResult, search
from .tools import collective_result, last_line
from .verdicts import NODE, NODE_FAULT, Finding

INSIDE, BETWEEN = "all2all", "send_recv"
#: The list of ranks is one argument and one environment variable of the program; Linux allows 128 KiB for each.
LONGEST_LIST = 120_000
#: Of what a node printed, the last so many characters are looked at.
LONGEST_OUTPUT = 1 << 20
#: What ``timeout`` ends with when it had to end the program.
_TIMED_OUT = (124, 137)


@dataclass(frozen=True)
class Result:
    """How a job ended; ``why`` is empty where it passed."""

    job: Job
    why: str
    figure: float | None = None

    @property
    def as_line(self) -> str:
        """One line for people."""
        sides = [" ".join(side) for side in (self.job.left, self.job.right) if side]
        return f"{' with '.join(sides)}: {self.why or f'passed ({self.figure:g} GB/s)'}"


def test_of(job: Job) -> str:
    """The test of ``hccl_demo`` that exercises the job's links."""
    return BETWEEN if job.right else INSIDE


def calls(
    jobs: Sequence[Job], cards: int, addresses: Mapping[str, str], port: int, timeout: int
) -> dict[str, dict[str, Any]]:
    """By node: the command, and the meeting point of its job. Jobs of one round have ports of their own."""
    found: dict[str, dict[str, Any]] = {}
    for number, job in enumerate(jobs):
        meeting = f"{addresses[job.nodes[0]]}:{port + number}"
        more = ["--ranks_list", _ranks(job, cards)] if job.right else []
        for place, node in enumerate(job.nodes):
            ranks = ["--nranks", str(cards * len(job.nodes)), "--ranks_per_node", str(cards), "--node_id", str(place)]
            argv = ["timeout", "--kill-after=10", str(timeout), "python3", "run_hccl_demo.py", *ranks]
            argv += ["--test", test_of(job), "--size", "32m", "--loop", "1000", *more]
            found[node] = {"argv": argv, "meeting": meeting}
    return found


def _ranks(job: Job, cards: int) -> str:
    """Both directions of every link between the groups, from card to card of the same number."""
    left = [(place, card) for place in range(len(job.left)) for card in range(cards)]
    pairs = [
        (place * cards + card, other * cards + card)
        for place, card in left
        for other in range(len(job.left), len(job.nodes))
    ]
    text = ",".join(f"{one},{other},{other},{one}" for one, other in pairs)
    if len(text) > LONGEST_LIST:
        raise Refusal(
            f"{len(job.nodes)} nodes are too many for one job of hccl_demo, whose list of ranks would have {len(text)} "
            "characters: search fewer at a time, such as 32, with --limit"
        )
    return text


def job_results(
    jobs: Sequence[Job], answers: Mapping[str, Any], floors: Mapping[str, float], timeout: int
) -> list[Result]:
    """How each job of a round ended. A job without a floor is compared with those of the round that are like it."""
    results = [_judged(job, answers, floors.get(test_of(job)), timeout) for job in jobs]
    alike: dict[tuple[str, int], dict[str, float]] = {}
    for number, result in enumerate(results):
        if not result.why and result.figure is not None:
            kind = (test_of(result.job), len(result.job.nodes))
            alike.setdefault(kind, {})[str(number)] = result.figure
    for figures in alike.values():
        for each in outliers(figures):
            number = int(each.member)
            results[number] = Result(jobs[number], f"stands apart with {each.evidence} GB/s", each.value)
    return results


@dataclass(frozen=True)
class Answer:
    """How a node's call ended: the exit code, None where no whole number was answered, and what it printed."""

    code: int | None
    output: str
    error: str


def answer_of(value: Any) -> Answer:
    """What a node answered, whatever it sent."""
    if not isinstance(value, Mapping):
        return Answer(None, "", "")
    code, texts = value.get("rc"), [value.get(name) for name in ("stdout", "stderr")]
    output, error = (
        each[-LONGEST_OUTPUT:].encode("utf-8", "replace").decode() if isinstance(each, str) else "" for each in texts
    )
    known = isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31
    return Answer(code if known else None, output, error)


def _judged(job: Job, answers: Mapping[str, Any], floor: float | None, timeout: int) -> Result:
    for node in job.nodes:
        answer = answer_of(answers.get(node))
        if answer.code is None:
            return Result(job, f"{node} gave no answer")
        if answer.code in _TIMED_OUT:
            return Result(job, f"{node} was not done after {timeout} s")
        if answer.code != 0:
            said = last_line(answer.output + "\n" + answer.error)
            return Result(job, f"exit code {printable(answer.code, 20)} on {node}: {printable(said, 200)}")
        if "which is bad" in answer.output:
            return Result(job, f"{node} computed a wrong result")
    read = collective_result(test_of(job), 0, answer_of(answers.get(job.nodes[0])).output)
    if not read.figures:
        return Result(job, f"{job.nodes[0]} printed no bandwidth")
    figure = read.figures[test_of(job)]
    if floor is not None and figure < floor:
        return Result(job, f"{figure:g} GB/s is below the floor of {floor:g}", figure)
    return Result(job, "", figure)


def replay(nodes: Sequence[str], most: int, passed: Sequence[Sequence[bool]]) -> list[Job] | SearchResult:
    """The jobs of the round that comes after those of ``passed``; what was found after the last one."""
    steps = search(nodes, most)
    jobs = next(steps)
    for results in passed:
        try:
            jobs = steps.send(list(results))
        except StopIteration as end:
            found: SearchResult = end.value
            return found
    return jobs


def findings(found: SearchResult) -> dict[str, list[Finding]]:
    """What the search says of each node. A bad link is neither node's fault, and takes none of them away."""
    said: dict[str, list[Finding]] = {}
    for node in found.nodes:
        evidence = "every collective with another node failed or was slow"
        said.setdefault(node, []).append(Finding("pair-search", NODE, NODE_FAULT, ERROR, ISOLATE, evidence))
    for one, other in found.links:
        for node, far in ((one, other), (other, one)):
            evidence = (
                f"collectives with {far} fail or are slow, those with others are not: look at the way between them"
            )
            said.setdefault(node, []).append(
                Finding("pair-search", f"link to {far}", NODE_FAULT, WARNING, WATCH, evidence)
            )
    return said
