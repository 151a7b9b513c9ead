"""Records of a JSON file that is one array of objects, or objects one after the other, without reading it whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gaudi3_scale.errors import ConfigError

CHUNK_BYTES = 2**20
LONGEST_RECORD = 2**30
"""Characters of one record, beyond which the file is taken for damaged."""
NEAR_THE_END = 16
"""What is incomplete is found wrong within this many characters of the end of what was read."""
BLANK = " \t\r\n"
ENDED = re.compile(
    r"\s*|[-+.\deE]{1,40}|\\?(u[\da-fA-F]{0,4})?|t(ru?)?|f(a(ls?)?)?|n(ul?)?|N(a)?|-?I(n(f(i(n(it?)?)?)?)?)?"
)
"""What is left, where what is wrong begins, of a value that the file ends within."""


class RepeatedFieldError(ValueError):
    """An object has a field twice, of which JSON's reader would take the last."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these fields, as `object_pairs_hook` of `json`; RepeatedFieldError if one stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise RepeatedFieldError(next(name for name in names if names.count(name) > 1))
    return found


class CutOffError(ConfigError):
    """The file ends within a record."""


class NotJsonError(ConfigError):
    """A record is no JSON."""


DECODER = json.JSONDecoder(object_pairs_hook=unique)


def json_records(file: IO[bytes], path: Path) -> Iterator[tuple[int, Any]]:
    """Each record, and about how many bytes were read by its end.

    Raises:
        ConfigError: The file is neither, or not UTF-8, or cut off; the sentence names the record or the byte.
    """
    text = _Text(file, path)
    begin = text.next()
    if begin == "[":
        text.position += 1
        yield from _array(text)
    elif begin == "{":
        while text.next():
            yield text.record()
    elif begin:
        raise ConfigError(
            f"{path} is neither a JSON array nor JSON objects: mend it, or set data.format to text to learn its bytes."
        )


def _array(text: _Text) -> Iterator[tuple[int, Any]]:
    if text.next() != "]":
        while True:
            yield text.record()
            if text.next() != ",":
                break
            text.position += 1
    if text.next() != "]":
        raise text.wrong("is cut off" if not text.next() else "is not followed by a comma or a bracket")
    text.position += 1
    if text.next():
        raise text.wrong("is followed by more than the array")


class _Text:
    """The decoded text from a position on, extended as it is needed."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._bytes = 0
        self._ended = False
        self._number = 0
        self._text = ""
        self.position = 0

    def next(self) -> str:
        """The next character that is no blank, which stays; empty at the end."""
        while True:
            while self.position < len(self._text):
                if self._text[self.position] not in BLANK:
                    return self._text[self.position]
                self.position += 1
            if self._ended:
                return ""
            self._extend(CHUNK_BYTES)

    def record(self) -> tuple[int, Any]:
        """About how many bytes were read by the end of the next record, and its value."""
        self.next()
        self._number += 1
        size = CHUNK_BYTES
        while True:
            try:
                value, self.position = DECODER.raw_decode(self._text, self.position)
            except RepeatedFieldError as error:
                raise self.wrong(f"has the field {str(error)!r} twice") from None
            except RecursionError:
                raise self.wrong("is nested too deep") from None
            except ValueError as error:
                at, open_string = getattr(error, "pos", 0), "Unterminated string" in str(error)
                whole = at < len(self._text) - NEAR_THE_END and not open_string
                if self._ended and (open_string or ENDED.fullmatch(self._text, at)):
                    raise self.wrong("is cut off", CutOffError) from None
                if self._ended or whole or len(self._text) > LONGEST_RECORD:
                    raise self.wrong("is not JSON", NotJsonError) from None
                self._extend(size)
                size *= 2
            else:
                return max(1, self._bytes - len(self._text) + self.position), value

    def wrong(self, what: str, kind: type[ConfigError] = ConfigError) -> ConfigError:
        """The error of a record."""
        return kind(f"Record {self._number} of {self._path} {what}: mend or delete it.")

    def _extend(self, size: int) -> None:
        data = self._file.read(size)
        self._ended = not data
        held = len(self._decoder.getstate()[0])
        try:
            more = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{self._path} is not UTF-8 at byte {self._bytes - held + error.start:,}: convert it."
            ) from None
        self._bytes += len(data)
        self._text = self._text[self.position :] + more
        self.position = 0
