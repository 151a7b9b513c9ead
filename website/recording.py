"""Record `make demo` in a terminal and draw it as one SVG that moves: docs/start/demo.svg.

    python website/recording.py                          record on simulated nodes, keep the cast, draw
    python website/recording.py --cast build/demo.cast   draw a cast that is there (asciinema's format, version 2)

Waits are cut. The picture needs no script and no font of its own. It plays twice and stays at its last screen. A
reader who has asked the system for less motion sees that screen alone.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/start/demo.svg"
CAST = ROOT / "build/demo.cast"
COLUMNS, ROWS = 80, 34
#: In the picture a wait for a new line takes at most this long, and one for a clock that counts in its line less.
#: Screens that follow each other more quickly than the last number are one. All in seconds.
LONGEST_WAIT, LONGEST_TICK, SHORTEST_SCREEN = 0.5, 0.03, 0.15
#: How long the last screen stays before it begins again, seconds; and how often it plays.
REST, TIMES = 8.0, 2
LIMIT = 150_000
"""Bytes of the picture at most."""
#: Where a run prints the name of the cluster; that of the demo is named nowhere else.
NAMED = ("--name {} --nodes", "cluster {} is up", "CLUSTER={} ", "clusters/{}/")
#: Pixels of a character, of a line, and around the text.
WIDE, HIGH, EDGE, BAR = 8.4, 18, 14, 30
#: Colours of the text on #161b22; each has a contrast of at least 4.5.
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd", 90: "#9198a1"}

Run = tuple[str, int]
"""Characters of one colour, which is 0 for the terminal's own."""
_PIECE = re.compile(r"\x1b\[(?P<numbers>[\d;?]*)(?P<order>[A-Za-z])|(?P<plain>[^\x1b])", re.DOTALL)


#: What the callback `progress` prints every ten seconds while it waits for a task.
_WAITING = re.compile(r"\s+(?P<phase>\w+) \(\d+ of \d+\): [^\x1b]*\b\d+:\d\d(?:, about [^\x1b]* left)?\s*")


@dataclass
class Terminal:
    """All lines that were printed, those that left the screen too; it refuses a sequence that it does not know."""

    columns: int = COLUMNS
    lines: list[list[tuple[str, int]]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    colour: int = 0

    def feed(self, text: str) -> None:
        """Print what a program wrote."""
        end = 0
        for found in _PIECE.finditer(text):
            if found.start() != end:
                break
            end = found.end()
            if found["plain"]:
                self._put(found["plain"])
            else:
                self._obey(found["order"], found["numbers"])
        if end != len(text):
            raise ValueError(f"The recording has a sequence that is not known here: {text[end : end + 12]!r}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
        elif character >= " ":
            if self.column == self.columns:
                self.column = 0
                self._down()
            line = self.lines[self.row]
            line += [(" ", 0)] * (self.column - len(line))
            line[self.column : self.column + 1] = [(character, self.colour)]
            self.column += 1
        else:
            raise ValueError(f"The recording has a control character that is not known here: {character!r}")

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _obey(self, order: str, numbers: str) -> None:
        if order == "m":
            for number in (int(each or 0) for each in numbers.split(";")):
                if number in (0, 39):
                    self.colour = 0
                elif number in COLOURS:
                    self.colour = number
        elif order == "K" and numbers in ("", "0"):
            del self.lines[self.row][self.column :]
        else:
            raise ValueError(f"The recording has a sequence that is not known here: ESC[{numbers}{order}")

    def shown(self) -> tuple[tuple[Run, ...], ...]:
        """The lines as runs of one colour, without blanks at their ends."""
        return tuple(_runs(line) for line in self.lines)


def _runs(line: list[tuple[str, int]]) -> tuple[Run, ...]:
    runs: list[Run] = []
    for character, colour in line:
        if runs and (runs[-1][1] == colour or character == " "):
            runs[-1] = (runs[-1][0] + character, runs[-1][1])
        else:
            runs.append((character, colour))
    if runs:
        runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
    return tuple(run for run in runs if run[0])


Screen = tuple[float, tuple[tuple[Run, ...], ...]]
"""When a screen appears, and all lines up to its end."""


def events(cast: str, names: Iterable[tuple[str, str]] = ()) -> Iterator[tuple[float, str]]:
    """When something was printed and what, with other names for this machine's; of a phase's waits only the first."""
    waited = set[str]()
    head, *lines = cast.splitlines()
    if json.loads(head).get("version") != 2:
        raise ValueError("A cast of version 2 is needed, as asciinema 2 writes it.")
    for moment, kind, text in (json.loads(line) for line in lines if line):
        if kind == "o":
            for this, other in names:
                text = text.replace(this, other)
            waits = _WAITING.fullmatch(text)
            if not waits or waits["phase"] not in waited:
                yield moment, text
            waited |= {waits["phase"]} if waits else set()


def screens(printed: Iterable[tuple[float, str]], columns: int = COLUMNS) -> list[Screen]:
    """What is seen when, without the waits."""
    terminal, found = Terminal(columns), list[Screen]()
    now = before = 0.0
    for moment, text in printed:
        now += min(moment - before, LONGEST_WAIT if "\n" in text else LONGEST_TICK)
        before = moment
        terminal.feed(text)
        if found and now - found[-1][0] < SHORTEST_SCREEN:
            found[-1] = (found[-1][0], terminal.shown())
        else:
            found.append((now, terminal.shown()))
    return found


@dataclass(frozen=True)
class Line:
    """A line as it is from one screen to another; the last one's end is that of the recording."""

    row: int
    runs: tuple[Run, ...]
    begins: float
    ends: float


def versions(seen: list[Screen], end: float) -> list[Line]:
    """Each line once for each text that it has had."""
    found: list[Line] = []
    current: dict[int, tuple[tuple[Run, ...], float]] = {}
    for moment, lines in seen:
        for row, runs in enumerate(lines):
            if row in current and current[row][0] == runs:
                continue
            if row in current and current[row][0]:
                found.append(Line(row, *current[row], moment))
            current[row] = (runs, moment)
    found += [Line(row, runs, begins, end) for row, (runs, begins) in current.items() if runs]
    return found


def draw(seen: list[Screen], title: str, description: str, rows: int = ROWS, columns: int = COLUMNS) -> str:
    """The SVG. Without its animations it is the last screen."""
    end = seen[-1][0] + REST
    width, height = round(columns * WIDE + 2 * EDGE), rows * HIGH + 2 * EDGE + BAR
    styles, drawn = dict[str, str](), []

    def named(steps: str) -> str:
        return styles.setdefault(steps, f"k{len(styles)}")

    for line in sorted(versions(seen, end), key=lambda each: (each.row, each.begins)):
        steps = f"0%{{opacity:0}}{_share(line.begins, end)}{{opacity:1}}"
        last = line.ends == end
        if not last:
            steps += f"{_share(line.ends, end)}{{opacity:0}}"
        if line.begins == 0.0:
            steps = steps.replace("0%{opacity:0}", "", 1)
        look = f' style="animation-name:{named(steps)}"'
        kind = "" if last else ' class="w"'
        drawn.append(f'<text{kind}{look} y="{line.row * HIGH}">{_text(line.runs)}</text>')
    tops = [(moment, max(0, len(_filled(lines)) - rows)) for moment, lines in seen]
    scroll, top = "", -1
    for moment, now in tops:
        if now != top:
            scroll += f"{_share(moment, end)}{{transform:translateY({-now * HIGH}px)}}"
            top = now
    frames = "".join(f"@keyframes {name}{{{steps}}}" for steps, name in styles.items())
    colours = "".join(f".c{number}{{fill:{colour}}}" for number, colour in COLOURS.items())
    dots = "".join(
        f'<circle cx="{EDGE + 6 + 18 * n}" cy="{BAR / 2:g}" r="5" fill="{c}"/>'
        for n, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="title description"><title id="title">{escape(title)}</title>'
        f'<desc id="description">{escape(description)}</desc>\n<style>'
        f"text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;"
        f"white-space:pre}}{colours}.w{{opacity:0}}"
        f"@media(prefers-reduced-motion:no-preference){{#log,text{{animation-duration:{end:.2f}s;"
        f"animation-timing-function:step-end;animation-iteration-count:{TIMES}}}#log{{animation-name:scroll}}}}\n"
        f"@keyframes scroll{{{scroll}}}{frames}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>'
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="none" stroke="#6e7681"/>{dots}'
        f'<svg x="{EDGE}" y="{BAR + EDGE}" width="{width - 2 * EDGE}" height="{rows * HIGH}">'
        f'<g transform="translate(0 14)"><g id="log" style="transform:translateY({-top * HIGH}px)">\n'
        + "\n".join(drawn)
        + "\n</g></g></svg></svg>\n"
    )


def _filled(lines: tuple[tuple[Run, ...], ...]) -> tuple[tuple[Run, ...], ...]:
    """Without the empty last line, where the cursor stands."""
    return lines[:-1] if lines and not lines[-1] else lines


def _share(moment: float, end: float) -> str:
    return f"{100 * moment / end:.2f}%"


def _text(runs: tuple[Run, ...]) -> str:
    """A line's runs, each at its column and as wide as its characters in any font."""
    column, drawn = 0, ""
    for text, colour in runs:
        kind = f' class="c{colour}"' if colour else ""
        lead = len(text) - len(text.lstrip())
        column += lead
        text = text[lead:]
        drawn += (
            f'<tspan x="{column * WIDE:g}" textLength="{len(text) * WIDE:g}"'
            f' lengthAdjust="spacingAndGlyphs"{kind}>{escape(text, quote=False)}</tspan>'
        )
        column += len(text)
    return drawn


def record(command: list[str], rows: int = ROWS, columns: int = COLUMNS) -> tuple[int, str]:
    """The exit code of a command that runs in a terminal of this size, and its cast."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    lines = [json.dumps({"version": 2, "width": columns, "height": rows, "command": " ".join(command)})]
    started = time.monotonic()
    # A make that knows of the make that called it names the folders it enters.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")
    }
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
    with subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        rest = b""
        while True:
            try:
                given = os.read(ours, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not given:
                break
            text, rest = _whole(rest + given)
            sys.stdout.write(text)
            sys.stdout.flush()
            lines.append(json.dumps([round(time.monotonic() - started, 3), "o", text]))
    os.close(ours)
    return process.returncode, "\n".join(lines) + "\n"


def _whole(given: bytes) -> tuple[str, bytes]:
    """The characters that are complete, and the bytes of one that is not."""
    for cut in range(4):
        try:
            return given[: len(given) - cut].decode(), given[len(given) - cut :]
        except UnicodeDecodeError:
            continue
    return given.decode(errors="replace"), b""


def main(arguments: list[str] | None = None) -> int:
    """Record unless a cast is given, and draw."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--cast", type=Path, help="a cast to draw, instead of a new recording")
    parser.add_argument("--cluster", default="demo", help="name of the simulated cluster that is recorded")
    parser.add_argument("--make", default="make", help="the make that is called, with options of its own")
    given = parser.parse_args(arguments)
    if given.cast is None:
        code, cast = record([*given.make.split(), "demo", f"CLUSTER={given.cluster}"])
        if code:
            print(f"make demo ended with {code}, so nothing is drawn.", file=sys.stderr)
            return code
        CAST.parent.mkdir(exist_ok=True)
        CAST.write_text(cast)
    else:
        cast = given.cast.read_text()
    names = [(str(ROOT), "/root/scale")]
    if given.cluster != "demo":
        names += [(text.format(given.cluster), text.format("demo")) for text in NAMED]
        names += [(f" --name {given.cluster}", "")]
    seen = screens([(0.0, "$ make demo\r\n"), *events(cast, names)])
    picture = draw(
        seen,
        "make demo in a terminal",
        "Two simulated Gaudi 3 nodes of 8 cards come up, site.yml runs its phases on them, and the summary shows a "
        "training job that has finished.",
    )
    if len(picture.encode()) > LIMIT:
        print(f"The picture has {len(picture.encode())} bytes, and at most {LIMIT} are wanted.", file=sys.stderr)
        return 1
    PICTURE.write_text(picture)
    print(f"{PICTURE.relative_to(ROOT)}: {len(picture.encode())} bytes, {seen[-1][0]:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
