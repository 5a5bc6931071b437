"""The site in a real browser: it loads, filters, shows frames, prints, and fits on a phone."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode

import pytest

from mxwire.capture import open_capture
from mxwire.report.frame_record import record
from mxwire.wire.decoder import Decoder

from . import samples

FAILED = "cells/open-mx-1.5--native-mx--every-type--loss.html"
LONG = "cells/native-mx--open-mx-1.5--large-lossy--loss.html"
ALL = LONG.replace("cells/", "frames/")
PAGES = (
    "index.html",
    "cases/every-type.html",
    FAILED,
    LONG,
    ALL,
    "cells/open-mx-1.5--open-mx-1.5-omx-9000--not-run--none.html",
)

CONTRAST = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((each) => each / 255)
      .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const known = new Map();
  const behind = (element) => {
    if (!element || known.has(element)) return known.get(element);
    const colour = getComputedStyle(element).backgroundColor;
    known.set(element, /^rgba\\(.*, 0\\)$/.test(colour) ? behind(element.parentElement) : colour);
    return known.get(element);
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const [one, two] = [element.closest("svg") ? style.fill : style.color, behind(element)].map(light);
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) poor.push(`${element.tagName} ${element.className?.baseVal ?? element.className}: ${contrast}`);
  }
  return [...new Set(poor)];
}"""


WIDE = """() => [...document.querySelectorAll(".matrix thead th, .matrix td:last-child")]
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"""


def test_the_last_column_of_the_matrix_can_be_seen_whole(browser, site):
    """No name is wider than its column, and the scroll bar has a place of its own."""
    for width in (390, 1280):
        with browser.page(site / "index.html", width=width) as page:
            assert page.evaluate(WIDE) == []
            box = page.locator(".scroll.tall:has(.matrix)")
            box.evaluate("(each) => (each.scrollLeft = each.scrollWidth)")
            last = page.locator(".matrix thead th").last.bounding_box()
            edge = box.bounding_box()
            assert last["x"] + last["width"] <= edge["x"] + edge["width"]


def visible(page, selector):
    return page.locator(selector).filter(visible=True)


@pytest.mark.parametrize("name", PAGES)
def test_each_page_loads_without_a_complaint_and_can_be_read(browser, site, name):
    """On a phone and a large screen, in both schemes: these are a matter of the style sheet, so it is loaded once."""
    with browser.page(site / name, width=375, height=700, has_touch=True) as page:
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.styleSheets.length") == 1
        assert page.evaluate("typeof startCopying") == "function", "the script has not run"
        assert page.evaluate("document.documentElement.scrollWidth") == 375
        for step in page.locator(".ladder .step").all()[:3]:
            step.tap()
            assert page.evaluate("document.documentElement.scrollWidth") == 375
            assert page.locator("#detail").is_visible()
        page.set_viewport_size({"width": 1280, "height": 800})
        backgrounds = set()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(CONTRAST) == [], scheme
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(backgrounds) == 2


def test_labels_of_the_ladder_stay_within_it_and_its_pictures_fit_on_paper(browser, site):
    outside = """() => [...document.querySelectorAll(".ladder text")].filter((each) => {
      const one = each.getBoundingClientRect(), two = document.querySelector(".ladder-box").getBoundingClientRect();
      return one.width && (one.left < two.left || one.right > two.right);
    }).map((each) => each.textContent)"""
    with browser.page(site / FAILED) as page:
        for width in (375, 700, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(outside) == [], width
        heights = page.locator(".ladder svg").evaluate_all("all => all.map((each) => each.clientHeight)")
        assert max(heights) < 400


def test_filters_keep_the_selected_rows(browser, site):
    with browser.page(site / "index.html") as page:
        cells = ".matrix td > a"
        assert visible(page, cells).count() == 6
        page.select_option("[name=verdict]", "pass")
        assert visible(page, cells).all_inner_texts() == ["✓ works", "⊘ fails"]
        assert page.locator("#shown").inner_text() == "2 of 6 cells"
        assert visible(page, ".matrix th[data-left]").all_inner_texts() == [
            "open-mx-1.5\n→ open-mx-1.5",
            "native-mx\n→ open-mx-1.5",
        ]
        assert visible(page, ".matrix tr.group").all_inner_texts() == ["messages", "large messages"]
        page.select_option("[name=left]", "native-mx")
        assert page.locator("#shown").inner_text() == "1 of 6 cells"
        page.select_option("[name=impairment]", "none")
        assert page.locator("#shown").inner_text() == "0 of 6 cells"
        assert page.locator("#nothing").is_visible()
        page.get_by_role("button", name="Show all").click()
        assert visible(page, cells).count() == 6
        for state, texts in {
            "works": ["✓ works", "i works", "≈ works"],
            "documented": ["⊘ fails"],
            "wrong": ["\N{MULTIPLICATION X} wrong"],
            "missing": ["\N{EN DASH} missing"],
        }.items():
            page.select_option("[name=state]", state)
            assert sorted(visible(page, cells).all_inner_texts()) == sorted(texts)
            count = page.locator(f".tiles .{state} .count").inner_text()
            assert int(count) == len(texts)
        page.select_option("[name=state]", "")
        page.select_option("[name=group]", "trouble")
        assert visible(page, cells).all_inner_texts() == ["\N{EN DASH} missing"]


def test_words_are_looked_for_in_cases_rules_and_reasons(browser, site):
    with browser.page(site / "index.html") as page:
        for words, count in (("timeout", 1), ("R-PUL-02", 2), ("every 1%", 1), ("LOSS", 3), ("no such thing", 0)):
            page.fill("[name=text]", words)
            assert visible(page, ".matrix td > a").count() == count, words


def test_a_pair_and_a_verdict_set_the_filters_and_their_address_keeps_them(browser, site):
    with browser.page(site / "index.html") as page:
        page.locator(".pairs a", has_text="1/2").nth(1).click()
        assert page.locator("#shown").inner_text() == "2 of 6 cells"
        assert page.input_value("[name=left]") == "native-mx"
        address = page.evaluate("location.hash")
        page.locator(".tiles .missing a").click()
        assert page.locator("#shown").inner_text() == "1 of 6 cells"
    with browser.page(f"{site / 'index.html'}{address}") as page:
        assert page.locator("#shown").inner_text() == "2 of 6 cells"


def test_back_returns_to_the_former_filters_and_frames_have_addresses(browser, site):
    with browser.page(site / "index.html") as page:
        page.locator(".tiles .missing a").click()
        assert page.locator("#shown").inner_text() == "1 of 6 cells"
        page.select_option("[name=state]", "works")
        page.fill("[name=text]", "a")
        page.fill("[name=text]", "every")
        assert page.locator("#shown").inner_text() == "2 of 6 cells"
        page.go_back()
        assert page.locator("#shown").inner_text() == "3 of 6 cells"
        page.go_back()
        assert page.locator("#shown").inner_text() == "1 of 6 cells"
        page.go_back()
        assert page.locator("#shown").inner_text() == "6 cells"
    with browser.page(site / FAILED) as page:
        page.locator(".ladder [href='#f64']").click()
        page.locator("#detail h3").wait_for()
        assert page.evaluate("location.hash") == "#f64"


def test_the_classes_of_each_pair_are_shown(browser, classes_site):
    with browser.page(classes_site / "index.html") as page:
        letters = page.locator(".pairs .classes").first.locator(".letter")
        assert [each.get_attribute("title") for each in letters.all()] == [
            "connect: works",
            "tiny: works",
            "small: unknown",
            "medium: fails",
            "large: partly",
        ]


def test_the_messages_of_a_cell_lead_to_its_frames(browser, site):
    with browser.page(site / FAILED) as page:
        page.wait_for_selector("html[data-ready]", state="attached")
        page.locator("#message-table tbody a", has_text="3").first.click()
        page.locator("#detail h3").wait_for()
        assert page.evaluate("location.hash") == "#m3"
        assert page.locator("#detail h3").inner_text().endswith("TINY")


def test_the_graphs_of_a_cell_are_drawn_when_they_come_into_view(browser, site):
    with browser.page(site / FAILED, width=375, has_touch=True) as page:
        page.wait_for_selector("html[data-ready]", state="attached")
        page.locator("#graphs").scroll_into_view_if_needed()
        page.wait_for_selector("#graphs[aria-busy=false]")
        assert page.evaluate("document.querySelector('#graphs').figures.length") == 3
        assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_a_frame_shows_the_fields_that_the_decoder_sees(browser, site):
    with open_capture(samples.ROOT / "captures" / "mxoe-every-type.pcap") as reader:
        (decoded,) = Decoder().decode_all(reader)
    with browser.page(site / FAILED) as page:
        for number in (1, 9, 45, 64, 87):
            page.locator(f".ladder [href='#f{number}']").click()
            seen = record(decoded, number - 1, verbose=True)
            assert page.locator("#detail h3").inner_text() == f"{number} {seen['type']}"
            shown = page.locator("#detail tr").evaluate_all(
                "rows => rows.map((row) => [row.cells[1].innerText, row.cells[2].innerText])"
            )
            assert [name for name, _ in shown] == [each["name"] for each in seen["layout"]]
            for (_, text), field in zip(shown, seen["layout"], strict=True):
                assert text.startswith(field["text"])
                assert re.sub(r"\s", "", field["bytes"][:32]) in re.sub(r"\s", "", text)


def test_the_ladder_is_walked_with_keys(browser, site):
    with browser.page(site / FAILED) as page:
        title = page.locator("#detail h3")
        page.locator(".ladder [href='#f4']").focus()
        page.keyboard.press("Enter")
        assert title.inner_text().startswith("4 ")
        page.keyboard.press("ArrowDown")
        assert title.inner_text().startswith("5 ")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        assert title.inner_text().startswith("3 ")
        page.get_by_role("button", name="Next frame").click()
        assert title.inner_text().startswith("4 ")
        page.keyboard.press("Escape")
        assert page.locator("#detail").is_hidden()
        assert page.evaluate("document.activeElement.getAttribute('href')") == "#f4"


def test_impairments_and_breaches_of_frames_are_shown(browser, site):
    with browser.page(site / FAILED) as page:
        for number, word in ((9, "LOST"), (12, "TWICE"), (15, "LATE")):
            assert page.locator(f".ladder [href='#f{number}'] .label").text_content().startswith(f"{word} ")
        assert [each.get_attribute("href") for each in page.locator(".ladder .concerned").all()] == ["#f20", "#f76"]
        page.locator("#findings + .scroll a[href='#f76']").click()
        assert page.locator("#detail .remark").all_inner_texts() == ["breaks R-CON-12"]
        assert page.locator(".ladder .chosen").get_attribute("href") == "#f76"
    with browser.page(site / f"{FAILED}#f12") as page:
        assert "arrives 2 times" in page.locator("#detail").inner_text()


def test_a_long_exchange_is_folded_and_shown_in_full(browser, site):
    with browser.page(site / LONG) as page:
        assert page.locator(".ladder .step").count() <= 120
        assert "not shown here" in page.locator("#exchange + p").inner_text()
        run = page.locator(".ladder .step", has_text="frames)").first
        first, last = run.get_attribute("href").removeprefix("#f"), run.get_attribute("data-last")
        run.click()
        assert page.locator("#detail h3").inner_text() == f"{first} PULL_REPLY"
        page.get_by_role("button", name="Next frame").click()
        assert page.locator("#detail h3").inner_text() == f"{last} PULL_REPLY"
        page.get_by_role("link", name="Show all frames").click()
        page.wait_for_url(f"**/{ALL}", wait_until="load")  # otherwise a long page is counted before it is complete
        assert page.locator(".ladder .step").count() == 840


def test_the_command_is_copied(browser, site):
    with browser.page(site / FAILED) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "mxwire interop --left open-mx-1.5 --right native-mx --case every-type --seed 7"


def test_without_scripts_everything_is_there(browser, site):
    with browser.page(site / "index.html", java_script_enabled=False) as page:
        assert visible(page, ".matrix td > a").count() == 6
        assert page.locator("#filters").is_hidden()
    with browser.page(site / FAILED, java_script_enabled=False) as page:
        assert page.locator(".ladder .step").count() == 87
        page.locator("details.frames summary").click()
        assert page.locator("tr#f64").is_visible()


@pytest.mark.parametrize("name", ["index.html", FAILED])
def test_it_prints(browser, site, name):
    with browser.page(site / name) as page:
        paper = page.pdf(prefer_css_page_size=True)
        assert paper.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 2
        page.emulate_media(media="print")
        assert visible(page, "button, select, nav").count() == 0
        assert visible(page, ".matrix td > a, .ladder .step").count() in (6, 87)
        for box in page.locator(".scroll").all():
            assert box.evaluate("each => getComputedStyle(each).overflow") == "visible"


def test_words_that_mean_harm_do_none(browser, hostile_site):
    pages = [hostile_site / "index.html", *sorted(hostile_site.glob("c*/*.html"))]
    assert len(pages) == 4
    shown = []
    for path in pages:
        with browser.page(path) as page:
            for step in page.locator(".ladder .step").all():
                step.click()
            assert page.evaluate("window.harmed") is None
            assert page.locator("img, script:not([src]):not([type='application/json'])").count() == 0
            assert samples.EVIL in page.locator("body").inner_text()
            if 'id="f1"' in path.read_text():
                name = page.locator("tr#f1 td").nth(1).text_content()
                assert "onerror='window.harmed=1'" in name
                records = json.loads(zlib.decompress(b64decode(page.locator("#records").text_content())))
                assert records["frames"].keys() == {"1", "2", "3"}
                shown.append(path)
    assert len(shown) == 1
