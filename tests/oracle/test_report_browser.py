"""Reports in a real browser: nothing overflows or complains, the filter works, and everything can be read.

Needs playwright (``pip install .[browser]``) and a Chromium: that of playwright, the one on the path, or the one that
``TTX_CHROMIUM`` names; without it the tests are skipped, or fail under ``TTX_BROWSER_REQUIRED=1``. ``TTX_SCREENSHOTS``
names a folder for pictures to look at.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "report"))

from report_support import migrations, source_of  # noqa: E402
from test_hostile import WORDS, report_page  # noqa: E402

from translator import api  # noqa: E402
from translator.findings import Place  # noqa: E402
from translator.ledger import Entry, LedgerLine  # noqa: E402
from translator.report import html  # noqa: E402
from translator.report.build import of_conversion, of_two  # noqa: E402
from translator.source import load  # noqa: E402
from translator.spec.touches import Touches  # noqa: E402

pytestmark = pytest.mark.oracle
PHONE, DESKTOP = (320, 640), (1280, 900)
CONTRAST, LARGE_CONTRAST = 4.5, 3.0
SECONDS = 2.0
NAMES = [*(migration.case.name for migration in migrations()), "two", *(f"hostile {name}" for name in sorted(WORDS))]

# Texts whose contrast with what lies behind them is below what they need, and how far.
PALE = """
([small, large]) => {
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => {
      const s = v / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
      if (colour[3] !== 0) return null;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length || element.closest("script")) continue;
    const style = getComputedStyle(element), back = behind(element);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const needed = size >= 24 || (bold && size >= 18.66) ? large : small;
    const one = light(parse(style.color)), two = back === null ? one : light(back);
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    seen += 1;
    if (ratio < needed) found.push(`${ratio.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 60)}`);
  }
  return [seen, found];
}
"""
# What reaches beyond the page, unless it lies in something that scrolls.
WIDE = """
() => {
  const limit = document.documentElement.clientWidth + 1;
  const inside = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX)) return true;
    }
    return false;
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width && box.right > limit && !inside(element)) found.push(`${element.tagName} ${Math.round(box.right)}`);
  }
  return [document.documentElement.scrollWidth, found];
}
"""
# Files of which a part is out of sight.
CUT = (
    "() => [...document.querySelectorAll('.lines')].filter((each) => each.scrollHeight > each.clientHeight + 1).length"
)
SHOWN = "() => [...document.querySelectorAll('tr.entry')].filter((row) => row.getClientRects().length).length"


def unavailable(reason: str) -> None:
    # A browser comes with no Python package, so that it is asked for apart from the other real things.
    if os.environ.get("TTX_BROWSER_REQUIRED") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        unavailable("playwright is not installed: pip install .[browser]")
    program = os.environ.get("TTX_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        try:
            running = playwright.chromium.launch(executable_path=program, args=arguments)
        except Error as error:
            unavailable(f"no Chromium: {str(error).splitlines()[0]}; name one with TTX_CHROMIUM")
        yield running
        running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("reports")
    known: dict[str, Path] = {}

    def path(name: str) -> Path:
        if name not in known:
            known[name] = folder / f"{len(known)}.html"
            known[name].write_text(text_of(name), encoding="utf-8")
        return known[name]

    return path


def text_of(name: str) -> str:
    if name.startswith("hostile "):
        return report_page(WORDS[name.removeprefix("hostile ")])[0]
    if name == "many":
        return many()
    case = next(each.case for each in migrations() if name in (each.case.name, "two"))
    done = case.convert()
    if name != "two":
        return html.page(of_conversion(source_of(case), done))
    result = load(str(case.expected / done.rendered.main))
    return html.page(of_two((source_of(case), result), (done.source, api.read(result))))


def many() -> str:
    """A page with ten thousand options."""
    case = migrations()[0].case
    source = source_of(case)
    done = api.convert(source, case.target, framework=case.framework)
    done.ledger[:] = [
        LedgerLine(
            f"--option-{index}",
            index,
            Place(case.source, 1 + index % 90, 1),
            (Entry.EXACT, Entry.UNSUPPORTED)[index % 2],
            tuple(Touches)[index % 5],
            f"section.option_{index} = {index}",
            "a note of some length, as real ones have it, to be read and searched",
        )
        for index in range(10_000)
    ]
    return html.page(of_conversion(source, done))


class Visit:
    """A page that is open, with what it said on its console and asked for."""

    def __init__(self, browser: Any, path: Path, size: tuple[int, int], **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.said.append(request.url) if request.url != path.as_uri() else None)
        self.page.goto(path.as_uri())

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_overflows_or_complains_and_all_can_be_read(
    browser: Any, pages: Callable[[str], Path], name: str, size: tuple[int, int]
) -> None:
    with Visit(browser, pages(name), size) as visit:
        width, wide = visit.page.evaluate(WIDE)
        assert (width, wide) == (size[0], [])
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            seen, pale = visit.page.evaluate(PALE, [CONTRAST, LARGE_CONTRAST])
            assert seen > 300
            assert pale == [], scheme
            if folder := os.environ.get("TTX_SCREENSHOTS"):
                plain = re.sub(r"[^\w.-]+", "-", name)
                visit.page.screenshot(path=Path(folder) / f"{plain}-{size[0]}-{scheme}.png", full_page=True)
        assert visit.said == []


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_the_filter(browser: Any, pages: Callable[[str], Path], size: tuple[int, int]) -> None:
    case = migrations()[0].case
    ledger = case.convert().ledger
    with Visit(browser, pages(case.name), size) as visit:
        page = visit.page
        status = page.get_by_role("status")

        def shows(count: int) -> None:
            page.wait_for_function(f"() => ({SHOWN})() === {count}", timeout=2000)
            assert status.inner_text() == f"Showing {count} of {len(ledger)} lines."

        shows(len(ledger))
        search = page.get_by_role("searchbox", name="Search")
        search.fill("--LR-warmup")
        shows(sum("--lr-warmup" in line.option for line in ledger))
        search.fill("no such option anywhere")
        shows(0)
        assert page.locator("tr.group:visible").count() == 0
        search.fill("")
        page.get_by_role("checkbox", name="losses only").check()
        shows(sum(line.entry.is_loss for line in ledger))
        page.get_by_role("combobox", name="Fate").select_option("unsupported")
        shows(sum(line.entry is Entry.UNSUPPORTED for line in ledger))
        page.get_by_role("button", name="Show all").click()
        shows(len(ledger))
        search.fill("train.toml dropout")
        page.keyboard.press("Enter")
        assert page.url.startswith("file:")
        assert visit.said == []


def test_without_scripts_everything_is_there(browser: Any, pages: Callable[[str], Path]) -> None:
    case = migrations()[0].case
    with Visit(browser, pages(case.name), DESKTOP, java_script_enabled=False) as visit:
        assert visit.page.locator("tr.entry:visible").count() == len(case.convert().ledger)
        assert visit.page.locator("form:visible").count() == 0
        assert visit.page.locator("main section:visible").count() == visit.page.locator("main section").count() >= 10


def test_links_lead_from_an_option_to_its_target_and_back(browser: Any, pages: Callable[[str], Path]) -> None:
    with Visit(browser, pages(migrations()[0].case.name), PHONE) as visit:
        page = visit.page
        page.locator("tr.entry td:nth-child(4) a").first.click()
        target = page.locator("li:target")
        assert target.is_visible()
        assert target.bounding_box()["y"] < PHONE[1]
        target.locator("a").first.click()
        assert page.locator("li:target").get_attribute("id").startswith("a")


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Any, pages: Callable[[str], Path]) -> None:
    with Visit(browser, pages(migrations()[0].case.name), DESKTOP) as visit:
        page = visit.page
        kinds = set()
        for index in range(60):
            page.keyboard.press("Tab")
            tag, width, style = page.evaluate(
                "() => { const at = document.activeElement, style = getComputedStyle(at);"
                "return [at.tagName, parseFloat(style.outlineWidth), style.outlineStyle]; }"
            )
            kinds.add(tag)
            assert tag != "BODY", index
            assert width >= 2
            assert style != "none"
            if index == 0:
                assert page.locator("a.skip").bounding_box()["height"] > 10
        assert {"A", "INPUT", "SELECT", "BUTTON", "DIV"} <= kinds


def test_print(browser: Any, pages: Callable[[str], Path]) -> None:
    for name in ("llama3-405b-megatron-to-torchtitan@0.2.2", "hostile long"):
        with Visit(browser, pages(name), (720, 1000), color_scheme="dark") as visit:
            visit.page.emulate_media(media="print")
            assert visit.page.locator("nav:visible, form:visible").count() == 0
            seen, pale = visit.page.evaluate(PALE, [CONTRAST, LARGE_CONTRAST])
            assert (seen > 300, pale) == (True, [])
            width, wide = visit.page.evaluate(WIDE)
            assert (width, wide) == (720, [])
            assert visit.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
            assert visit.page.evaluate(CUT) == 0
            assert len(visit.page.pdf(format="A4")) > 10_000


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_ten_thousand_options_are_searched_in_time(
    browser: Any, pages: Callable[[str], Path], size: tuple[int, int]
) -> None:
    path = pages("many")
    started = time.perf_counter()
    with Visit(browser, path, size) as visit:
        opened = time.perf_counter() - started
        page = visit.page
        assert page.evaluate(WIDE) == [size[0], []]
        # Of two rounds the better one: a machine with other work to do says nothing of the page.
        times: dict[str, float] = {}
        for words, count in 2 * (("--option-77", 111), ("option_1", 1111), ("", 10_000)):
            started = time.perf_counter()
            page.get_by_role("searchbox").fill(words)
            page.wait_for_function(
                "(n) => document.getElementById('shown').textContent.startsWith(`Showing ${n} of`)", arg=count
            )
            times[words] = min(times.get(words, SECONDS), time.perf_counter() - started)
        print(f"{size[0]}: opened in {opened:.2f} s, searched in {times}")
        assert max(times.values()) < SECONDS
        assert visit.said == []
