"""website/recording.py: a terminal's lines become a picture without waits, which is still where motion is unwanted."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from website import recording

ROOT = recording.ROOT
SVG = "{http://www.w3.org/2000/svg}"


def screens(*printed: tuple[float, str]) -> list[recording.Screen]:
    return recording.screens(printed, columns=10)


def words(screen: recording.Screen) -> list[str]:
    return ["".join(text for text, _colour in line) for line in screen[1]]


def test_lines_are_wrapped_coloured_and_written_over() -> None:
    (screen,) = screens((0.0, "0123456789ab\r\n\x1b[0;32mok\x1b[0m no\r\nwait 0:01\rdone\x1b[K\r\n"))
    assert words(screen) == ["0123456789", "ab", "ok no", "done", ""]
    assert screen[1][2] == (("ok ", 32), ("no", 0))


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;title\x07", "\x07"])
def test_a_sequence_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not known here"):
        screens((0.0, text))


def test_waits_are_shortened_and_quick_screens_are_one() -> None:
    seen = screens((0.0, "a\r\n"), (0.05, "b\r\n"), (100.0, "c\r\n"), (101.0, "\r1 s"), (102.0, "\r2 s"))
    assert [words(screen) for screen in seen][:1] == [["a", "b", ""]]
    assert seen[-1][0] < 2 * recording.LONGEST_WAIT
    assert words(seen[-1]) == ["a", "b", "c", "2 s"]


def test_of_a_phase_that_waits_one_line_stays() -> None:
    lines = ["drivers ...", "    drivers (4 of 10): Load the\r\n    driver, 0:1", "    fabric (5 of 10): Wait, 0:1"]
    printed = [lines[0], *(f"{lines[1]}{n}, about 3 min left" for n in range(3)), f"{lines[2]}1", f"{lines[2]}2"]
    cast = "\n".join(['{"version": 2}', *(json.dumps([n, "o", f"{text}\r\n"]) for n, text in enumerate(printed))])
    assert [text.rstrip() for _moment, text in recording.events(cast)] == [printed[0], printed[1], printed[4]]


def test_names_of_the_machine_are_replaced_before_lines_are_wrapped() -> None:
    cast = '{"version": 2}\n' + json.dumps([0.5, "o", "in /somewhere/x\r\n"]) + "\n" + json.dumps([1, "i", "q"]) + "\n"
    assert list(recording.events(cast, [("/somewhere", "/root")])) == [(0.5, "in /root/x\r\n")]
    with pytest.raises(ValueError, match="version 2"):
        list(recording.events('{"version": 1}'))


def test_the_picture_without_motion_is_the_last_screen() -> None:
    seen = screens((0.0, "one\r\n"), (1.0, "two 1\r"), (2.0, "two 2\r\n"), (3.0, "three\r\n"))
    drawn = recording.draw(seen, "a title", "what <is> seen", rows=2, columns=10)
    root = ElementTree.fromstring(drawn)
    texts = [(text.get("class"), "".join(text.itertext())) for text in root.iter(f"{SVG}text")]
    assert [text for kind, text in texts if kind == "w"] == ["two 1"]
    assert sorted(text for kind, text in texts if kind is None) == ["one", "three", "two 2"]
    (log,) = (group for group in root.iter(f"{SVG}g") if group.get("id") == "log")
    assert log.get("style") == f"transform:translateY(-{recording.HIGH}px)"
    style = "".join(root.find(f"{SVG}style").itertext())  # type: ignore[union-attr]
    still = re.sub(r"@media\(prefers-reduced-motion:no-preference\)\{(?:[^{}]*\{[^{}]*\})*\}", "", style)
    assert "animation-duration" in style and "animation-duration" not in still
    assert [root.findtext(f"{SVG}{name}") for name in ("title", "desc")] == ["a title", "what <is> seen"]


def test_a_command_is_recorded_with_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAKELEVEL", "1")
    code, cast = recording.record(
        ["sh", "-c", "stty size; printf 'µ\\n'; echo level=$MAKELEVEL; exit 3"], rows=12, columns=40
    )
    assert code == 3
    assert "".join(text for _moment, text in recording.events(cast)) == "12 40\r\nµ\r\nlevel=\r\n"
    assert json.loads(cast.splitlines()[0])["width"] == 40
    assert "12 40" in capsys.readouterr().out


def test_a_demo_that_fails_leaves_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    before = recording.PICTURE.read_bytes()
    assert recording.main(["--make", "false"]) == 1
    assert "so nothing is drawn" in capsys.readouterr().err
    assert recording.PICTURE.read_bytes() == before


def test_the_committed_picture_is_small_and_asks_for_nothing() -> None:
    drawn = recording.PICTURE.read_text()
    assert len(drawn.encode()) <= recording.LIMIT
    root = ElementTree.fromstring(drawn)
    assert not re.findall(r"(?:href|src)=|url\(|@import|<script", drawn)
    text = " ".join("".join(each.itertext()) for each in root.iter(f"{SVG}text"))
    assert "make demo" in text and "training job demo: finished" in text
    assert str(ROOT) not in drawn


def contrast(colour: str, ground: str) -> float:
    """The contrast of two colours, as WCAG defines it."""

    def light(text: str) -> float:
        parts = (int(text[n : n + 2], 16) / 255 for n in (1, 3, 5))
        red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    above, below = sorted((light(colour), light(ground)), reverse=True)
    return (above + 0.05) / (below + 0.05)


def test_every_colour_can_be_read() -> None:
    assert min(contrast(colour, "#161b22") for colour in (*recording.COLOURS.values(), "#e6edf3")) > 4.5
