"""A page of HTML is read as Markdown."""

from __future__ import annotations

from website import html_text

PAGE = """<nav>menu</nav><article role="main"><h1>x<a class="headerlink" href="#x">#</a></h1><p>Does
it with <code><strong>a</strong></code>.</p><ul><li><p>one</p></li><li>two<ul><li>three</li></ul></li></ul>
<script>no</script><table><tr><td><strong>name</strong></td><td>what</td></tr></table>
<pre>a  b
</pre></article><footer>foot</footer>"""


def test_headings_lists_and_code_are_markdown() -> None:
    assert html_text.markdown(PAGE) == (
        "# x\n\nDoes it with `a`.\n\n- one\n- two\n\n  - three\n\n**name**\n\nwhat\n\n```\na  b\n\n```\n"
    )
