"""The page in a real browser, where there is one: nothing in its console, and nothing asked of the network, at a phone's width and a
desk's."""

import json
import pathlib
import shutil
import subprocess

import pytest

from compare.records import read
from compare.report import page as report

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs/results").glob("*/report.html"))
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps")


def opened(page, folder, width):
    """(its console's lines, the addresses that it asked for) of a page that a browser has drawn; the browser asks its maker for others."""
    log, picture = folder / "net.json", folder / "page.png"
    words = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--enable-logging=stderr", f"--window-size={width},2000",
             f"--screenshot={picture}", page.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and picture.stat().st_size > 10_000, done.stderr
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    events = json.loads(log.read_text())["events"]
    asked = (e.get("params", {}) for e in events)
    return console, {p["url"] for p in asked if p.get("network_isolation_key", "").startswith("file:") and "url" in p}


@pytest.mark.skipif(not BROWSER, reason="there is no Chromium; the package chromium has it")
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.parent.name)
def test_a_page_is_drawn_without_a_word_and_without_the_network(page, width, tmp_path):
    console, addresses = opened(page, tmp_path, width)
    assert console == [] and [a for a in addresses if not a.startswith(("file:", "data:"))] == []


@pytest.mark.skipif(not BROWSER, reason="there is no Chromium; the package chromium has it")
@pytest.mark.parametrize("width", [390, 1400])
def test_a_page_that_is_made_now_is_drawn_as_well(width, tmp_path):
    """With pictures that the committed pages may not have yet."""
    page = tmp_path / "report.html"
    page.write_text(report.page(read(ROOT / "docs/results/cpu-2cores-amx/records.jsonl")))
    console, addresses = opened(page, tmp_path, width)
    assert console == [] and [a for a in addresses if not a.startswith(("file:", "data:"))] == []


@pytest.mark.skipif(not BROWSER, reason="there is no Chromium; the package chromium has it")
def test_what_a_page_must_not_do_is_seen(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>x</title><img src='http://localhost:9/x.png'><script>console.error('oh')</script>" + "<p>text" * 500)
    console, addresses = opened(page, tmp_path, 390)
    assert any("oh" in line for line in console) and "http://localhost:9/x.png" in addresses
