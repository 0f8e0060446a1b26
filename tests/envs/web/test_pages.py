from __future__ import annotations

import time

from envs.web.pages import MAX_ELEMENTS, MAX_LINES, read_page


def test_elements_are_numbered_in_document_order_with_names_and_values() -> None:
    page = read_page(
        """<title>T</title><h1>Head</h1><p>see <a href="/x">A "b"</a> too</p>
        <form><label for=q>Search</label> <input id=q name=q value="z">
        <label><input type=checkbox checked> <span>Gift</span></label>
        <select name=s aria-label=Size><option>S<option selected>M</select>
        <textarea name=t>a\nb</textarea><input type=password name=p value=abc><button disabled>Go</button></form>
        <table><tr><td>1</td><td><a href=/p>P</a></td></tr></table>"""
    )
    assert page.title == "T"
    assert page.lines == (
        "# Head",
        "see [1] link \"A 'b'\" too",
        '[2] textbox "Search" = "z" [3] checkbox "Gift" checked [4] combobox "Size" = "M" of (S | M) '
        '[5] textbox "t" = "a\\nb" [6] textbox "p" = "***" [7] button "Go" disabled',
        '1 | [8] link "P"',
    )


def test_hidden_things_are_not_shown_and_get_no_number() -> None:
    html = """<input type=hidden name=cents value=1><div hidden><button>a</button></div><script>x</script>
    <p style="display: none"><a href=/>b</a></p><button>c</button>"""
    assert read_page(html).lines == ('[1] button "c"',)


def test_text_cannot_imitate_an_element() -> None:
    assert read_page('<p>[7] button "Buy"</p>').lines == ('(7) button "Buy"',)
    assert '= "(7) x"' in read_page("<input name=a value='[7] x'>").lines[0]


def test_deep_long_and_wide_pages_are_bounded() -> None:
    begun = time.process_time()
    deep = read_page("<div>" * 100_000 + "x")
    assert deep.elements == ()
    assert "nests deeper" in deep.lines[0]
    assert len(read_page("<p>x</p>" * (MAX_LINES + 100)).lines) <= MAX_LINES
    assert len(read_page("<a href=/>x</a>" * (MAX_ELEMENTS + 100)).elements) == MAX_ELEMENTS
    assert max(map(len, read_page("<p>" + "y" * 10_000).lines)) <= 400
    assert time.process_time() - begun < 20  # a parser left alone takes minutes for the first of these


def test_unclosed_paragraphs_and_list_items_do_not_count_as_depth() -> None:
    assert len(read_page("<ul>" + "<li>x" * 3000 + "</ul>").lines) == 3000
