"""Pages in a real browser: nothing fails, everything is shown, and pointing, keys, sliders and print work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browsers import needs_browser, open_browser

from censnet.report import report_page
from censnet.runs.run import Run

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for all tests of this file."""
    with open_browser() as browser:
        yield browser


class Opened:
    """A page that was opened; whatever it reports or asks of a network is recorded."""

    def __init__(self, browser: Any, text: str, folder: Path, width: int = 1440, **options: Any) -> None:
        path = folder / "page.html"
        path.write_text(text, encoding="utf-8")
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.messages.extend([request.url] * (request.url != path.as_uri())))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.ready === 'yes'")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
        assert self.messages == []

    def text(self, figure: str) -> str:
        return str(self.page.locator(f'[data-figure="{figure}"]').first.inner_text())

    def counts(self, part: str) -> dict[str, str]:
        lines = [re.split(r"\t", line) for line in self.text("counts").splitlines() if line.strip()]
        place = lines[0].index(part)
        return {line[0]: line[place] for line in lines[1:]}


def test_the_threshold_gives_the_counts_of_predictions_csv(
    browser: Any, fraud: tuple[Run, Path], fraud_page: str, tmp_path: Path
) -> None:
    frame = pd.read_csv(fraud[1] / "fraud" / "predictions.csv")
    with Opened(browser, fraud_page, tmp_path) as opened:
        for threshold in (0.5, 0.42):
            opened.page.fill('[data-control="threshold"]', str(threshold))
            opened.page.keyboard.press("Tab")
            for part in ("validation", "test"):
                mine = frame[frame["split"] == part]
                flagged, positive = mine["fraud_p_1"] >= threshold, mine["fraud"] == 1
                found = opened.counts(part)
                assert int(found["flagged"]) == int(flagged.sum())
                assert int(found["of these right"]) == int((flagged & positive).sum())
                assert int(found["missed"]) == int((~flagged & positive).sum())
                if flagged.any():
                    precision = 100 * float((flagged & positive).sum() / flagged.sum())
                    assert float(found["precision"].split()[0]) == pytest.approx(precision, abs=0.06)
        opened.page.fill('[data-control="recall"]', "90")
        opened.page.keyboard.press("Tab")
        assert float(opened.counts("validation")["recall"].split()[0]) >= 90
        slider = opened.page.locator('[data-control="slider"]')
        slider.focus()
        slider.press("End")
        everyone = len(frame[frame["split"] == "validation"])
        assert int(opened.counts("validation")["flagged"]) == everyone
        slider.press("Home")
        assert int(opened.counts("validation")["flagged"]) <= 1
        opened.page.fill('[data-control="cost-missed"]', "1000")
        opened.page.click('[data-control="cheapest"]')
        assert int(opened.counts("validation")["missed"]) == 0


def test_pointing_at_a_node_lights_up_its_edges_and_the_reverse(browser: Any, fraud_page: str, tmp_path: Path) -> None:
    with Opened(browser, fraud_page, tmp_path) as opened:
        canvas = opened.page.locator('canvas[data-panel="node"]')
        canvas.scroll_into_view_if_needed()
        assert "No point" in opened.text("chosen")
        canvas.focus()
        canvas.press("ArrowRight")
        first = opened.text("chosen")
        assert first.startswith("Node a")
        edges = int(re.search(r"edges\n(\d+)", first)[1])  # type: ignore[index]
        lit = "(p) => [...document.querySelectorAll('canvas.top')].find((c) => c.dataset.panel === p)"
        some = f"{lit[:-1]}).getContext('2d').getImageData(0, 0, 900, 900).data.some((value) => value > 0)"
        assert edges > 0
        assert opened.page.evaluate(some, "edge")
        canvas.press("Enter")
        assert "(kept)" in opened.text("chosen")
        canvas.press("Escape")
        assert "No point" in opened.text("chosen")
        box = opened.page.locator('canvas[data-panel="edge"]').bounding_box()
        opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for step in range(0, 200, 6):
            opened.page.mouse.move(box["x"] + box["width"] / 2 - step, box["y"] + box["height"] / 2)
            if opened.text("chosen").startswith("Edge"):
                break
        assert re.match(r"Edge a\d+ . a\d+\n", opened.text("chosen"))
        assert opened.page.evaluate(some, "node")


def test_an_error_leads_to_its_molecule_on_the_map(browser: Any, molecule_page: str, tmp_path: Path) -> None:
    with Opened(browser, molecule_page, tmp_path) as opened:
        row = opened.page.locator("table.errors tbody tr").first
        assert row.locator("svg").count() == 1
        assert re.search(r"[\d.]+ % of labels lie in their interval of 90 %", opened.text("coverage"))
        smiles = row.locator("td bdi").all_inner_texts()
        row.focus()
        row.press("Enter")
        assert any(f"Molecule {text} (kept)" in opened.text("chosen") for text in smiles)
        assert opened.page.locator('[data-figure="chosen"] svg line').count() > 0
        opened.page.locator(".search summary").click()
        opened.page.fill('[data-control="find"]', smiles[0])
        assert opened.page.locator(".search tbody tr").count() >= 1
        opened.page.select_option('label:has-text("Target") select', index=1)
        assert opened.page.locator('[data-figure="roc"]').count() == 1


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_screen_and_every_figure_has_its_table(
    browser: Any, fraud_page: str, molecule_page: str, tmp_path: Path, width: int
) -> None:
    for page, scheme in ((fraud_page, "dark"), (molecule_page, "light")):
        with Opened(browser, page, tmp_path, width, color_scheme=scheme) as opened:
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
            without = (
                "() => [...document.querySelectorAll('main figure')].filter((f) => !f.querySelector('canvas, table'))"
            )
            opened.page.eval_on_selector_all("details", "(all) => all.forEach((one) => { one.open = true; })")
            assert opened.page.evaluate(f"({without})().map((f) => f.dataset.figure)") == []
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
            names = opened.page.evaluate(
                "[...document.querySelectorAll('select, input, button')].filter((c) => !c.closest('label') "
                "&& !c.ariaLabel && !c.innerText).length"
            )
            assert names == 0


def test_pages_of_links_and_of_many_graphs_open_and_print(browser: Any, links: Run, many: Run, tmp_path: Path) -> None:
    for run in (links, many):
        with Opened(browser, report_page(run), tmp_path) as opened:
            opened.page.emulate_media(media="print")
            assert opened.page.locator("nav").is_hidden()
            assert opened.page.locator("h2").first.is_visible()
            assert len(opened.page.pdf()) > 10_000


def test_the_worst_ids_are_no_script(browser: Any, links: Run, tmp_path: Path) -> None:
    frame = links.predictions["link"].copy()
    frame["source"] = "</script><img src=x onerror=\"document.title='owned'\">"
    frame["target"] = "\u202e" + "x" * 500
    changed = Run(**{**links.__dict__, "predictions": {"link": frame}})
    with Opened(browser, report_page(changed), tmp_path) as opened:
        assert "owned" not in opened.page.title()
        assert opened.page.locator("main img").count() == 0
        assert "onerror" in opened.page.locator("table.errors").inner_text()
