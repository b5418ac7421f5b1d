"""A reader's first ten minutes, in a real browser: start page, chapter 3, run all, turn a slider.

Everything runs on a copy of the notebooks, on this machine alone: requests to anywhere
else are refused and counted.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (extra `dev`)")

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(NAMES)} on PATH")

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LANGUAGES = ("zh-TW", "en")
QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
HAN = re.compile(r"[\u4e00-\u9fff]")
PIXELS = """image => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL();
}"""
# JupyterLab draws only the cells near the window: go to the first with this tag or these words.
SHOW_CELL = """async mark => {
    const notebook = jupyterapp.shell.currentWidget.content;
    const index = notebook.widgets.findIndex(({model}) =>
        model.sharedModel.source.includes(mark) || model.getMetadata("tags")?.includes(mark));
    notebook.activeCellIndex = index;
    await notebook.scrollToItem(index, "center");
}"""
CELLS = """() => jupyterapp.shell.currentWidget.content.model.toJSON().cells
    .filter(cell => cell.cell_type === "code" && cell.source.length > 0)"""
IDLE = """() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session
    ?.kernel?.status === 'idle'"""
RUN_ALL = """async () => {
    await jupyterapp.commands.execute("notebook:clear-all-cell-outputs");
    jupyterapp.commands.execute("notebook:run-all-cells");
}"""
ALL_RAN_OR_ONE_FAILED = f"""() => {{
    const cells = ({CELLS})();
    const failed = cell => cell.outputs.some(output => output.output_type === "error");
    return ({IDLE})() && (cells.every(cell => cell.execution_count) || cells.some(failed));
}}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, with token, of a JupyterLab that serves a copy of the notebooks."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(NOTEBOOKS, home / "notebooks", ignore=shutil.ignore_patterns("src"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
           "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
               "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
               f"--ServerApp.root_dir={home}", f"--IdentityProvider.token={token}",
               "--expose-app-in-browser",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    environment = os.environ | {name: str(home / ".jupyter" / name) for name in own}
    with open(home / "lab.log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait_for_server(f"http://127.0.0.1:{port}/api/status?token={token}", server, home / "lab.log")
        yield f"http://127.0.0.1:{port}/lab/workspaces/{{workspace}}/tree/{{path}}?token={token}"
    finally:
        server.terminate()
        server.wait(20)


def wait_for_server(address: str, server: subprocess.Popen, log: Path, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start within {seconds:.0f} s:\n{log.read_text()[-3000:]}")


@pytest.fixture
def refused() -> list[str]:
    """The addresses off this machine that `page` has asked for."""
    return []


@pytest.fixture
def page(tmp_path: Path, refused: list[str]) -> Iterator[playwright.Page]:
    """A page of a new browser that can reach this machine only."""

    def gate(route: playwright.Route) -> None:
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=CHROMIUM, headless=True, args=QUIET,
            chromium_sandbox=False, viewport={"width": 1280, "height": 900}, locale="en-US")
        browser.route(re.compile(r"^https?:"), gate)
        browser.pages[0].set_default_timeout(30_000)
        yield browser.pages[0]
        browser.close()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_reader_runs_chapter_3_and_the_figure_follows_the_slider(lab, page, refused, lang):
    chapter = next(path.name for path in (NOTEBOOKS / lang).glob("03-*.ipynb"))
    page.goto(lab.format(workspace=lang, path=f"notebooks/{lang}/00-start.ipynb"))
    page.wait_for_function(IDLE)
    page.evaluate(SHOW_CELL, f"]({chapter})")
    page.locator(f'a[href*="{lang}/{chapter}"]').first.click()
    page.wait_for_function("name => jupyterapp.shell.currentWidget?.title.label === name",
                           arg=chapter)
    page.wait_for_function(IDLE)
    heading = page.locator(".jp-NotebookPanel:visible h1").first.inner_text()
    assert bool(HAN.search(heading)) == (lang == "zh-TW"), heading

    page.evaluate(RUN_ALL)
    page.wait_for_function(ALL_RAN_OR_ONE_FAILED, timeout=60_000)
    assert_all_ran_without_error(page.evaluate(CELLS))

    page.evaluate(SHOW_CELL, "widget")
    bench = page.locator(".kv-bench").first
    readout, picture = bench.locator(".kv-readout"), bench.locator("img.kv-figure")
    handle = bench.locator(".noUi-handle").first
    handle.wait_for()
    assert bool(HAN.search(bench.inner_text())) == (lang == "zh-TW"), bench.inner_text()

    number, pixels = readout.inner_text(), picture.evaluate(PIXELS)
    handle.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    playwright.expect(readout).not_to_have_text(number, timeout=20_000)
    until(lambda: picture.evaluate(PIXELS) != pixels, "the figure did not follow the slider")

    assert_all_ran_without_error(page.evaluate(CELLS))
    assert refused == [], "the page asked for something that is not on this machine"


def assert_all_ran_without_error(cells: list[dict]) -> None:
    """Every code cell has run, and none has an error or anything on stderr."""
    for cell in cells:
        assert cell["execution_count"], f"did not run: {cell['source']}"
        for output in cell["outputs"]:
            failed = output["output_type"] == "error" or output.get("name") == "stderr"
            assert not failed, f"{cell['source']}\n→ {output}"


def until(condition: Callable[[], bool], message: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.1)
