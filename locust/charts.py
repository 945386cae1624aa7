"""Locust's own charts of chapter 1's problem, as a picture for the book.

    cargo run -p chapter1 -- problem
    .tools/venv/bin/python locust/charts.py --chromium "$(command -v chromium)" src/tools/locust-charts.png

Users come one after the other for as long as it lasts, so that the charts show what more of them change.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
LOAD = "--headless --users 200 --spawn-rate 3 --run-time 60s --think 0.5"
WIDTH, HEIGHT = 800, 1000
# Charts are drawn when they are scrolled to, and with an animation.
DRAWN_MS = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", type=Path, required=True)
    parser.add_argument("--host", default="http://127.0.0.1:8080")
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        locust = Path(sys.executable).with_name("locust")
        command = [locust, "-f", HERE / "chapter1.py", "--host", arguments.host, *LOAD.split(), "--html", report]
        # The problem misses the script's limit, so its exit code is no failure here.
        subprocess.run(command, check=False)
        if not report.exists():
            sys.exit(f"Locust wrote no report; does a service answer at {arguments.host}?")
        draw(report, arguments.chromium, arguments.picture)


def draw(report: Path, chromium: Path, picture: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(report.as_uri())
        charts = page.locator("canvas").all()
        for chart in charts:
            chart.scroll_into_view_if_needed()
            page.wait_for_timeout(DRAWN_MS)
        page.evaluate("scrollTo(0, 0)")
        boxes = [chart.bounding_box() for chart in charts]
        top = min(box["y"] for box in boxes)
        bottom = max(box["y"] + box["height"] for box in boxes)
        clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top}
        page.screenshot(path=picture, full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main()
