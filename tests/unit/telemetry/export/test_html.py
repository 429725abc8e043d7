"""Pages: texts are escaped once, nothing is fetched, no script runs."""

from __future__ import annotations

from surefoot.telemetry.export import html


def test_text_is_escaped_and_markup_is_not_escaped_again():
    assert html.escape('<b> & "x"') == "&lt;b&gt; &amp; &quot;x&quot;"
    assert html.escape(html.escape("<b>")) == "&lt;b&gt;"


def test_a_page_forbids_scripts_and_requests():
    text = html.page("<script>", "lead & more", [html.section("One", "", "<p>body</p>")])
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    assert "<script" not in text
    assert "<title>&lt;script&gt;</title>" in text
    assert "lead &amp; more" in text
    assert "url(" not in text


def test_a_section_has_its_id_and_no_empty_note():
    assert html.section("T", "", "x", id="curve", wide=True) == (
        '<section id="curve" class="card wide"><h2>T</h2>x</section>'
    )


def test_cells_are_texts_or_markup():
    table = html.table(["a<"], [["b<", html.share_bar(0.5)], [html.heat_cell("1<", 0.1)]])
    assert "<th>a&lt;</th>" in table
    assert "<td>b&lt;</td>" in table
    assert '<td><span class="share" style="width:50%"></span></td>' in table
    assert "1&lt;</span>" in table


def test_details_unfold_their_body():
    assert html.details("a<", "<p>b</p>") == "<details><summary>a&lt;</summary><p>b</p></details>"
