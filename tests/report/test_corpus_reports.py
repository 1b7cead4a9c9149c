"""Real configurations: whatever can be converted can be reported on, and the page holds together."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_support import parsed

from translator import api
from translator.errors import TtxError
from translator.reading import ReadOptions
from translator.report import html, markdown
from translator.report.build import of_conversion, of_two
from translator.source import load

TARGETS = ("torchtitan@0.2.2", "megatron@0.18.0", "deepspeed@0.19.2")
SUFFIXES = {".sh", ".toml", ".json", ".yaml", ".yml", ".py", ".sbatch"}
EVERY = 6  # configurations are alike; one of so many, with one target each, takes seconds


@pytest.mark.corpus
def test_every_conversion_has_a_report(corpus: Path) -> None:
    paths = [path for path in sorted(corpus.rglob("*")) if path.is_file() and path.suffix in SUFFIXES]
    reported = 0
    for index, path in enumerate(paths[::EVERY]):
        try:
            source = load(str(path))
            reading = api.read(source, options=ReadOptions(world_size=16))
            done = api.convert(reading, TARGETS[index % len(TARGETS)])
        except TtxError:
            continue
        report = of_conversion(source, done)
        tree = parsed(html.page(report))
        identifiers = [each.attributes["id"] for each in tree.all() if "id" in each.attributes]
        assert len(identifiers) == len(set(identifiers)), path
        assert {str(each.attributes["href"])[1:] for each in tree.all("a")} <= set(identifiers), path
        assert sum(len(group.rows) for group in report.ledger) == len(done.ledger)
        assert markdown.page(report).startswith("# ")
        assert of_two((source, source), (reading, reading)).same_training, path
        reported += 1
    assert reported > 25
