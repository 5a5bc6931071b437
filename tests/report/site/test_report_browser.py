"""The report of a capture in a real browser: zoom, hover, filters, linked selection, keyboard, phone, dark, print."""

from __future__ import annotations

import pytest

from tests.interop.site.test_browser import CONTRAST, visible

from .conftest import EVIL

READY = "html[data-ready]"
DRAWN = "#graphs[aria-busy=false]"
RANGE = "() => { const r = document.querySelector('#graphs').figures[0].x_range; return [r.start, r.end]; }"


def ready(page):
    page.wait_for_selector(READY, state="attached")


def drawn(page):
    """Wait for the graphs; they are drawn when they come into view."""
    ready(page)
    page.locator("#graphs").scroll_into_view_if_needed()
    page.wait_for_selector(DRAWN, state="attached")


def test_the_page_loads_without_a_complaint_and_can_be_read(browser, lossy):
    """A change of the scheme draws the graphs again, in other colours."""
    with browser.page(lossy / "index.html") as page:
        drawn(page)
        page.locator("#message-table tbody a").first.click()
        page.wait_for_selector("#message .graph[aria-busy=false]", state="attached")
        for scheme in ("light", "dark"):
            if scheme == "dark":
                page.evaluate("for (const each of document.querySelectorAll('#graphs, .graph')) each.ariaBusy = 'true'")
                page.emulate_media(color_scheme="dark")
            for box in ("#graphs", ".graph"):
                page.wait_for_selector(f"{box}[aria-busy=false]", state="attached")
            backs = page.evaluate(
                "[...document.querySelectorAll('#graphs, .graph')].flatMap((each) => each.figures)"
                ".map((each) => each.background_fill_color)"
            )
            back = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--back').trim()")
            assert backs == [back] * 4, scheme
            assert page.evaluate(CONTRAST) == [], scheme
        canvas = page.locator("#graphs canvas").first.bounding_box()
        assert canvas["width"] > 500


def test_no_part_is_wider_than_a_phone(browser, lossy):
    with browser.page(lossy / "index.html", width=390, height=800, has_touch=True) as page:
        drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.locator("#message-table tbody a").first.tap()
        page.locator("#message .ladder .step").first.tap()
        assert page.locator("#detail").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_graphs_zoom_with_buttons_keys_and_wheel(browser, lossy):
    with browser.page(lossy / "index.html") as page:
        drawn(page)
        start, end = page.evaluate(RANGE)
        page.get_by_role("button", name="Zoom in").click()
        low, high = page.evaluate(RANGE)
        assert high - low == pytest.approx((end - start) / 2)
        page.locator("#graphs").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate(RANGE)[0] > low
        page.keyboard.press("-")
        assert page.evaluate(RANGE)[1] - page.evaluate(RANGE)[0] == pytest.approx(end - start)
        page.keyboard.press("0")
        assert page.evaluate(RANGE)[0] <= 0 and page.evaluate(RANGE)[1] >= 2.72
        ranges = page.evaluate("new Set(document.querySelector('#graphs').figures.map((each) => each.x_range)).size")
        assert ranges == 1, "all graphs have the same times"
        box = page.locator("#graphs canvas").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 90, box["y"] + box["height"] / 2)
        page.mouse.up()
        assert page.evaluate(RANGE)[0] < 0, "dragging moves it"


def test_the_graphs_open_on_the_message(browser, lossy):
    """Also if the address of the page names it; a click on a point leaves them where they are."""
    with browser.page(lossy / "index.html#m1") as page:
        drawn(page)
        low, high = page.evaluate(RANGE)
        assert 0 < low < 0.0154 and 0.085 < high < 0.1, "message 1 takes 70 ms of 2.7 s"
        page.get_by_role("button", name="Everything").click()
        assert page.evaluate(RANGE)[1] > 2.7
        page.locator("#message-table tbody a").nth(1).click()
        page.wait_for_function("location.hash === '#m2'")
        low, high = page.evaluate(RANGE)
        assert -0.1 < low < 0.0959 and high > 2.7
    with browser.page(lossy / "index.html") as page:
        drawn(page)
        whole = page.evaluate(RANGE)
        page.evaluate(
            """() => {
              const { renderers } = document.querySelector("#graphs").figures[1];
              const points = renderers.map((each) => each.data_source).find((each) => each.data.message);
              points.selected.indices = [0];
            }"""
        )
        page.wait_for_function("location.hash.startsWith('#m1f')")
        assert page.evaluate(RANGE) == whole


def test_titles_and_legends_leave_room_on_a_phone(browser, lossy):
    with browser.page(lossy / "index.html", width=390, height=800) as page:
        drawn(page)
        found = page.evaluate(
            """() => document.querySelector("#graphs").figures.map((each) => {
              const lines = each.title.text.split("\\n");
              const view = Bokeh.index.find_one_by_id(each.id) ?? Bokeh.index.find_by_id(each.id);
              const context = document.createElement("canvas").getContext("2d");
              context.font = "12px sans-serif";
              return [Math.max(...lines.map((line) => context.measureText(line).width)), view.frame.bbox.height];
            })"""
        )
        for width, height in found:
            assert width < 390 - 90
            assert height > 110
        assert all(height > 270 for _, height in found[1:])


def place_of(page, message: int, kind: str) -> tuple[float, float]:
    """The position of a point of the given kind in the graph of the message that is shown."""
    return tuple(
        page.evaluate(
            """([kind]) => {
              const box = document.querySelector("#message .graph");
              const figure = box.figures[0];
              const view = Bokeh.index.find_one_by_id(figure.id) ?? Bokeh.index.find_by_id(figure.id);
              const renderer = figure.renderers.find((each) => each.data_source.data.label?.[0] === kind);
              const { x0, y0 } = renderer.data_source.data;
              const frame = view.frame;
              const area = view.el.getBoundingClientRect();
              return [area.x + frame.x_scale.compute(x0[0]), area.y + frame.y_scale.compute(y0[0])];
            }""",
            [kind],
        )
    )


def test_a_point_shows_its_frame_and_a_frame_its_point(browser, lossy):
    with browser.page(f"{lossy / 'index.html'}#m1") as page:
        ready(page)
        # The ladder is there before the library that draws the graph has been read.
        page.wait_for_selector("#message .graph[aria-busy=false]", state="attached")
        page.locator("#message .graph").scroll_into_view_if_needed()
        x, y = place_of(page, 1, "announcement")
        page.mouse.move(x, y)
        tip = page.get_by_text("announcement, message 1")
        tip.wait_for()
        page.mouse.click(x, y)
        page.locator("#detail h3").wait_for()
        assert page.locator("#detail h3").inner_text().endswith("RNDV")
        number = page.locator("#detail h3").inner_text().split()[0]
        assert page.evaluate("location.hash") == f"#m1f{number}"
        page.get_by_role("button", name="Next frame").click()
        second = page.locator("#detail h3").inner_text().split()[0]
        assert page.evaluate("location.hash") == f"#m1f{second}" and second != number
        times = (
            "() => document.querySelector('#message .graph').figures[0].center.filter((each) => each.type === 'Span')"
        )
        assert page.evaluate(f"({times})()[0].visible")


def test_messages_are_filtered_and_sorted(browser, lossy):
    with browser.page(lossy / "index.html") as page:
        drawn(page)
        rows = "#message-table tbody tr"
        assert visible(page, rows).count() == 2 and page.locator("#messages-shown").inner_text() == "2 messages"
        page.fill("[name=text]", "sent 2 times 17 re-requests")
        assert visible(page, rows).count() == 1
        assert page.locator("#messages-shown").inner_text() == "1 of 2 messages"
        page.get_by_role("button", name="Show all").click()
        page.locator(rows).nth(1).wait_for()
        page.locator("th[data-name=took] button").click()
        page.locator("th[data-name=took] button").click()
        assert page.locator(f"{rows} th").all_inner_texts() == ["2", "1"]
        assert page.locator("th[aria-sort=descending]").inner_text().startswith("ms")
        page.check("#in-view")
        page.evaluate(
            "() => { const r = document.querySelector('#graphs').figures[0].x_range; r.start = 0.7; r.end = 0.9; }"
        )
        page.wait_for_selector("#messages-shown:text('1 of 2 messages')")
        assert page.locator(f"{rows} th").all_inner_texts() == ["2"]


def test_back_and_addresses_work(browser, lossy):
    with browser.page(lossy / "index.html") as page:
        ready(page)
        page.locator("#message-table tbody a").first.click()
        page.locator("#message-title:text('Message 1')").wait_for()
        page.locator("#message-table tbody a").nth(1).click()
        page.locator("#message-title:text('Message 2')").wait_for()
        assert page.locator("#message-table tr.chosen th").all_inner_texts() == ["2"]
        page.go_back()
        page.locator("#message-title:text('Message 1')").wait_for()
        page.go_back()
        page.wait_for_selector("#message", state="hidden")
        page.locator(".finding a").first.click()
        page.locator("#detail h3").wait_for()
        assert page.locator("#detail h3").inner_text().split()[0] == page.locator(".finding a").first.inner_text()
    with browser.page(f"{lossy / 'index.html'}#m2f419") as page:
        ready(page)
        page.locator("#detail h3").wait_for()
        assert page.locator("#detail h3").inner_text() == "419 PULL"
        assert "[early re-request]" in page.locator(".ladder .chosen").text_content()


def test_it_prints(browser, lossy):
    with browser.page(f"{lossy / 'index.html'}#m1") as page:
        ready(page)
        page.locator("#message .ladder .step").first.wait_for()
        page.wait_for_selector(DRAWN, state="attached")  # though they are out of view
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
        page.emulate_media(media="print")
        assert visible(page, "select, .zoom").count() == 0
        assert visible(page, "#message-table tbody tr").count() == 2


def test_without_scripts_findings_and_hosts_are_there(browser, lossy):
    with browser.page(lossy / "index.html", java_script_enabled=False) as page:
        assert page.locator(".finding").count() == 6 and "need JavaScript" in page.locator("main").inner_text()
        assert page.locator(".pair-table tbody tr").count() == 2
        assert page.locator("#message-filters").is_hidden()


def test_names_that_are_markup_do_no_harm(browser, hostile):
    with browser.page(f"{hostile / 'index.html'}#m1") as page:
        ready(page)
        page.locator("#message .ladder .step").first.click()
        page.locator("#detail h3").wait_for()
        assert page.evaluate("window.harmed") is None
        assert page.locator("img, script:not([src]):not([type='application/json'])").count() == 0
        assert EVIL[-40:] in page.locator("#message-table").inner_text()
        assert "<img src=x onerror=harmed>.pcapng" in page.locator("h1").inner_text()
