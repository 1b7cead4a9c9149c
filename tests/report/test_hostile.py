"""What a configuration says is shown and does nothing: markup, directions, long words, many options."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from page_support import parsed

from translator import api
from translator.findings import Place
from translator.ledger import Entry, LedgerLine
from translator.printable import one_line
from translator.report import html, markdown
from translator.report.build import of_conversion
from translator.source import Source
from translator.spec.touches import Touches

BASE = """torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 \\
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --train-iters 100 \\
  --lr 1e-4 --bf16 --vocab-size 50257 --save '{path}' --tokenizer-model '{path}' --mock-data --wandb-exp-name '{path}'
"""
WORDS = {
    "script": '<script>alert(1)</script><img src=x onerror="alert(2)">',
    "attribute": '" onmouseover="alert(1)" x="',
    "entity": "&lt;script&gt; &amp;amp;",
    "template": "{{ 7*7 }} {% include '/etc/passwd' %} ${jndi:ldap://x} $(touch /nowhere)",
    "direction": "a\u202egnp.exe\u2066b\u200b",
    "control": "a\x1b[31mred\x07\x0b\u2028b\u0085c",
    "markdown": "| x | [y](javascript:alert(1)) ![z](http://x/y.png) `a``b` **c** # d ~~e~~ $f$",
    "backslash": "C:\\\\dir\\<b>x\\[y](z)\\| w\\`q",
    "long": "/very/long" + "/x" * 10_000,
    "style": "</style><style>*{display:none}</style>-->",
    "close": "</code></li></ol></main></body></html>",
}
SECONDS = 2.0


def report_page(path: str) -> tuple[str, str]:
    source = Source("train.sh", BASE.format(path=path))
    done = api.convert(source, "torchtitan@0.2.2", framework="megatron@0.18.0")
    report = of_conversion(source, done)
    return html.page(report), markdown.page(report)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_hostile_values_are_inert(name: str) -> None:
    page, text = report_page(WORDS[name])
    tree, plain = parsed(page), parsed(report_page("/plain")[0])
    assert [each.tag for each in tree.all("script")] == ["script"]
    assert {each.tag for each in tree.all()} == {each.tag for each in plain.all()}
    assert not [key for each in tree.all() for key in each.attributes if key.startswith("on")]
    assert "<script>alert" not in page
    # Style and script hold line ends; everything else that is no print is shown as an escape.
    for shown in (page, text):
        assert not [character for character in shown if not character.isprintable() and character != "\n"]


def test_hostile_values_are_still_told() -> None:
    page, text = report_page(WORDS["script"])
    rows = [row.text for row in parsed(page).all("tr") if row.attributes.get("class") == "entry"]
    assert any('<img src=x onerror="alert(2)">' in row for row in rows)
    assert "\\<script\\>alert(1)\\</script\\>" in text
    page, text = report_page(WORDS["template"])
    assert "{{ 7*7 }} {% include" in page
    assert "\\{\\{ 7\\*7 \\}\\}" in text


@pytest.mark.parametrize("name", sorted(WORDS))
def test_hostile_names_of_files_are_inert(name: str) -> None:
    source = Source(WORDS[name][:200], BASE.format(path="/x"))
    done = api.convert(source, "torchtitan@0.2.2", framework="megatron@0.18.0")
    page = html.page(of_conversion(source, done))
    assert "<script>alert" not in page
    assert [each.tag for each in parsed(page).all("title")] == ["title"]


def test_markdown_tables_keep_their_columns() -> None:
    for path in WORDS.values():
        text = report_page(path)[1]
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert len(rows) > 50
        header = 0
        for line in text.splitlines():
            cells = line.replace("\\\\", "").replace("\\|", "").count("|")
            if line.startswith("|") and header == 0:
                header = cells
            header = header if line.startswith("|") else 0
            assert not line.startswith("|") or cells == header, line[:200]


def test_ten_thousand_options_in_two_seconds() -> None:
    source = Source("train.sh", BASE.format(path="/x") + "# more\n" * 10_000)
    done = api.convert(source, "torchtitan@0.2.2", framework="megatron@0.18.0")
    lines = [
        LedgerLine(
            f"--option-{index}",
            "<b>" * 20,
            Place("train.sh", 5 + index, 1),
            (Entry.EXACT, Entry.UNSUPPORTED)[index % 2],
            tuple(Touches)[index % 5],
            f"section.option_{index} = 1",
            "a note | of <some> *length* " * 3,
        )
        for index in range(10_000)
    ]
    done.ledger[:] = lines
    started = time.perf_counter()
    report = of_conversion(source, done)
    page = html.page(report)
    text = markdown.page(report)
    assert time.perf_counter() - started < SECONDS
    assert page.count('class="entry"') == 10_000
    assert text.count("--option-") == 10_000 + sum(line.alters_training for line in lines)
    shown = sum(len(file.lines) for file in report.left.files)
    assert shown + sum(file.left_out for file in report.left.files) == source.text.count("\n")
    assert shown <= 1_600
    identifiers = {each.attributes["id"] for each in parsed(page).all() if "id" in each.attributes}
    assert {str(each.attributes["href"])[1:] for each in parsed(page).all("a")} <= identifiers


def test_a_real_source_of_thousands_of_options(tmp_path: Path, ttx: Callable[..., Any]) -> None:
    path = tmp_path / "train.toml"
    path.write_text(
        '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nsteps = 10\n[custom]\n'
        + "".join(f"option_{index} = {index}\n" for index in range(3_000))
    )
    result = ttx("report", path, "--from", "torchtitan@0.2.2", "--to", "megatron", "-o", tmp_path / "out.html")
    assert (result.code, result.err) == (1, "")
    assert (tmp_path / "out.html").read_text().count('class="entry"') > 3_000


@pytest.mark.parametrize("name", sorted(WORDS))
def test_markdown_is_rendered_as_it_is_meant(name: str) -> None:
    """As GitHub would: what a value holds makes no link, picture, heading or markup."""
    text = report_page(WORDS[name])[1]
    tree = parsed(MarkdownIt("commonmark").enable("table").render(text).replace("<hr />", "").replace("<br />", ""))
    plain = MarkdownIt("commonmark").enable("table").render(report_page("/plain")[1])
    known = {each.tag for each in parsed(plain.replace("<hr />", "").replace("<br />", "")).all()}
    assert {each.tag for each in tree.all()} == known
    assert known.isdisjoint({"a", "img", "script", "br"})
    for table in tree.all("table"):
        width = len(table.all("thead")[0].all("th"))
        assert all(len(row.children) == width for row in table.all("tbody")[0].children if row.tag == "tr")
    cells = " ".join(each.text for each in tree.all("td"))
    assert "".join(text_shown(WORDS[name]).split()) in "".join(cells.split())


def text_shown(value: str) -> str:
    """The start of a value as a cell shows it."""
    return one_line(value, 300).removesuffix("...")[:200]
