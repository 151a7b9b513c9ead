"""Text out of tokens as they come: the same as of all tokens at once, and nothing of a stop text."""

from __future__ import annotations

import answering
import pytest

from gaudi3_scale.serving.text_writer import TextWriter

TOKENIZER = answering.tokenizer()
TEXT = "A river, ein Fluß, 河流, 🏔️ and the end."


def pieces(text: str, stop: tuple[str, ...] = ()) -> tuple[list[str], TextWriter]:
    """What comes out for each token until it is stopped, and at the end."""
    writer = TextWriter(TOKENIZER, stop)
    found = []
    for token in TOKENIZER(text).input_ids:
        found.append(writer.push(token))
        if writer.stopped:
            break
    return [*found, writer.end()], writer


def test_the_pieces_are_the_text_and_no_character_is_cut() -> None:
    found, writer = pieces(TEXT)
    assert "".join(found) == writer.text == TEXT
    assert not any("\ufffd" in piece for piece in found)
    assert len([piece for piece in found if piece]) == len(TEXT)


@pytest.mark.parametrize(
    "stop, text",
    [
        (("Fluß",), "A river, ein "),
        (("no such",), TEXT),
        (("流, 🏔️", "zzz"), "A river, ein Fluß, 河"),
        ((" and", " the end"), "A river, ein Fluß, 河流, 🏔️"),
        (("A",), ""),
        (("end.",), TEXT[:-4]),
        (("end.x",), TEXT),
    ],
)
def test_a_stop_text_ends_it_and_is_never_given_out(stop: tuple[str, ...], text: str) -> None:
    found, writer = pieces(TEXT, stop)
    assert "".join(found) == writer.text == text
    assert writer.stopped is (text != TEXT)


def test_a_stop_text_of_repeated_letters() -> None:
    found, writer = pieces("aaab aab", ("aab",))
    assert "".join(found) == writer.text == "a"
    assert pieces("ab" * 6 + "abac", ("abac",))[1].text == "ab" * 6


def test_bytes_that_are_no_characters_come_at_last() -> None:
    writer = TextWriter(TOKENIZER, ())
    half = TOKENIZER("ß").input_ids[0]
    given = [writer.push(half) for _ in range(20)]
    text = "".join(given) + writer.end()
    assert text == writer.text == TOKENIZER.decode([half] * 20)


def test_without_a_tokenizer_there_is_no_text() -> None:
    writer = TextWriter(None, ())
    assert (writer.push(3), writer.end(), writer.text) == ("", "", "")
