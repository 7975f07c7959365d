"""The page of the service in a real browser: paste, predict, see the answer and why, on a phone's width too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browsers import needs_browser, open_browser
from serving_client import serving

pytestmark = needs_browser
ANSWERED = "html[data-answered='{}']"


def wait_for_why(page: Any) -> None:
    """Wait until the reasons are shown; a refusal is shown instead of them."""
    page.wait_for_selector("#why h2:visible, #state.wrong", timeout=60_000)
    assert page.locator("#state.wrong").count() == 0, page.locator("#state").inner_text()


def test_molecules_and_links_are_predicted_and_explained(home: Path) -> None:
    arguments = (home / "molecules", home / "contacts", "--workers", 1, "--max-seconds", 120)
    with serving(*arguments) as (address, _), open_browser() as browser:
        page: Any = browser.new_page(viewport={"width": 390, "height": 900})
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(address)
        assert "each molecule" in page.locator("#lead").inner_text()
        page.locator("textarea").first.fill("CCO\nC1CC\n[NH3][Pt]([NH3])(Cl)Cl")
        page.locator("button[type=submit]").click()
        page.wait_for_selector(ANSWERED.format(1), timeout=60_000)
        said = page.locator("#answers").inner_text()
        assert "unclosed ring" in said
        assert "element Pt is in no training molecule" in said
        wait_for_why(page)
        assert page.locator("#why img").count() == 1
        assert "atoms the answer moves" in page.locator("#why").inner_text()
        page.locator("select").first.select_option("contacts")
        assert "predicts links" in page.locator("#lead").inner_text()
        page.locator("button[type=submit]").click()
        page.wait_for_selector("#answers tr[data-row] button:visible", timeout=60_000)
        page.locator("#answers tr[data-row] button").nth(1).click()
        wait_for_why(page)
        assert "log odds of link" in page.locator("#why h2").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert messages == []
