"""Code blocks are found wherever they stand, with their languages, marks and outputs."""

from __future__ import annotations

import pytest

from tests.walks.markdown import blocks, logical_lines, spans, without_comment

PAGE = """\
# A page

<!-- not run: it needs a Gaudi -->
```sh
hl-smi
```

```text
HL-SMI
```

1. In a list:

   ```sh
   echo one \\
     two   # three
   ```
   ```text
   one two
   ```

   Prose in between.

   ```text
   not an output of it
   ```

- <!-- not run: within an item -->
  ```python
  1 / 0
  ```

Prose ends a mark: <!-- not run: too far away -->

```yaml title
a: 1
```

    indented

```
none
```
"""


def test_every_block_is_found_with_its_language_and_place() -> None:
    found = [(each.language, each.line, each.is_indented) for each in blocks(PAGE, "page.md")]
    assert found == [
        ("sh", 4, False), ("text", 8, False), ("sh", 14, False), ("text", 18, False), ("text", 24, False),
        ("python", 29, False), ("yaml", 35, False), ("", 39, True), ("", 41, False),
    ]  # fmt: skip
    assert blocks(PAGE, "page.md")[0].place == "page.md:4"


def test_a_mark_holds_for_the_block_on_the_next_line_alone() -> None:
    found = {each.line: each.reason for each in blocks(PAGE) if each.reason}
    assert found == {4: "it needs a Gaudi", 29: "within an item"}
    assert [each.line for each in blocks(PAGE) if each.is_run] == [14]


@pytest.mark.parametrize("mark", ["<!-- not run: -->", "<!-- not run -->", "<!-- it cannot be run -->"])
def test_a_mark_without_a_reason_is_none(mark: str) -> None:
    (block,) = blocks(f"{mark}\n```sh\ntrue\n```\n")
    assert block.is_run


def test_an_output_is_the_block_directly_after_commands() -> None:
    found = {each.line: each.output for each in blocks(PAGE) if each.output is not None}
    assert found == {4: "HL-SMI\n", 14: "one two\n"}


def test_lines_that_go_on_are_one_and_comments_are_none() -> None:
    assert logical_lines("a \\\n  b   # c\n\n# d\ne '#f' g#h") == ["a b", "e '#f' g#h"]
    assert without_comment('echo "a # b" # c') == 'echo "a # b" '


def test_code_in_running_text_is_found_wherever_it_stands() -> None:
    page = "# Of `one`\n\n- a\n  `two\n  words`\n\n| `three` |\n|---|\n\n<!-- `no` -->\n```sh\necho `no`\n```\n"
    assert spans(page) == ["one", "two words", "three"]
