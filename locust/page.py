"""Opens Locust's page in a browser and presses Start, as a reader of chapter 1 does; with --picture, takes the book's picture.

    cargo run -p chapter1 -- problem
    .tools/venv/bin/python locust/page.py --users 200 --per-second 3 --seconds 60 --picture src/chapter1/locust.png

Ends with exit code 1 if the page shows no answers within a minute.
"""

import argparse
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1120, 700
# Below the charts is an empty strip.
PICTURE_HEIGHT = 1000
# Charts are drawn with an animation.
DRAWN_MS = 2_000
# Longest time for the page to open and for the first answers to be on it. Anything longer is broken.
WITHIN_S = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default=next(filter(None, map(shutil.which, CHROMIUM)), None))
    parser.add_argument("--host", default="http://127.0.0.1:8080", help="Where the service listens")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--per-second", type=float, default=100, help="Users who come each second")
    parser.add_argument("--seconds", type=int, default=5, help="How long to wait before looking at the page")
    parser.add_argument("--picture", type=Path, help="Where to write the picture of the charts")
    arguments = parser.parse_args()
    if arguments.chromium is None:
        sys.exit(f"no browser found: install {CHROMIUM[0]}, or name it by --chromium")
    port = free_port()
    locust = Path(sys.executable).with_name("locust")
    address = ["--web-host", "127.0.0.1", "--web-port", str(port)]
    # Longer than the page is looked at.
    load = ["--think", "0", "--run-time", "10m"]
    server = subprocess.Popen([locust, "-f", HERE / "chapter1.py", *load, *address])
    try:
        wait_for(port, server)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.set_default_timeout(WITHIN_S * 1000)
            page.goto(f"http://127.0.0.1:{port}")
            start(page, arguments)
            page.wait_for_timeout(arguments.seconds * 1000)
            answers = answers_on(page)
            print(f"Locust's page shows {answers} answers")
            if arguments.picture:
                draw(page, arguments.picture)
            browser.close()
    finally:
        server.terminate()
        server.wait(WITHIN_S)
    sys.exit(0 if answers else 1)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port: int, server: subprocess.Popen) -> None:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("Locust opened no page")


def start(page: Page, arguments: argparse.Namespace) -> None:
    page.locator('input[name="userCount"]').fill(str(arguments.users))
    page.locator('input[name="spawnRate"]').fill(str(arguments.per_second))
    page.locator('input[name="host"]').fill(arguments.host)
    page.get_by_role("button", name=re.compile("^start", re.I)).click()


def answers_on(page: Page) -> int:
    """The answers without a failure in the last row of the page's table, once there are any."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        row = page.get_by_role("row").filter(has_text="Aggregated")
        cells = row.first.inner_text().split()
        requests, failures = (int(cell) for cell in cells[1:3])
        if requests > failures:
            return requests - failures
        page.wait_for_timeout(500)
    return 0


def draw(page: Page, picture: Path) -> None:
    page.get_by_role("tab", name="Charts").click()
    page.wait_for_timeout(DRAWN_MS)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": PICTURE_HEIGHT}
    page.screenshot(path=picture, full_page=True, clip=clip)


if __name__ == "__main__":
    main()
