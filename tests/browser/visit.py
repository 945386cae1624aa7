"""One visit: a page opened in Chromium, with all that went wrong meanwhile."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Request, Response

# As root in a container Chromium needs `--no-sandbox`; the others keep the browser itself from
# looking for the network, so that every request seen is the page's own.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# True once images and framed documents have arrived, or have failed to.
EVERYTHING_IS_HERE = """() =>
    [...document.images].every((image) => image.complete) &&
    [...document.querySelectorAll("iframe, object")].every((frame) => {
        try {
            const inner = frame.contentDocument;
            return inner === null || (inner.readyState === "complete" && inner.URL !== "about:blank");
        } catch {
            return true;
        }
    })"""

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SECONDS = 20


@dataclass(frozen=True)
class Look:
    """How the reader's browser is set up."""

    name: str
    theme: str
    scheme: str
    viewport: dict[str, int]


LIGHT = Look("light", "light", "light", DESKTOP)
DARK = Look("dark", "navy", "dark", DESKTOP)
SMALL = Look("phone", "light", "light", PHONE)


@dataclass
class Troubles:
    """What a page did that it should not."""

    console: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)


def launch(playwright: Playwright, chromium: Path) -> Browser:
    """Starts the browser that is on the machine."""
    return playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)


def context_for(browser: Browser, look: Look) -> BrowserContext:
    """A fresh profile with the look's theme chosen as a reader would have chosen it."""
    context = browser.new_context(
        viewport=look.viewport,
        color_scheme=look.scheme,
        device_scale_factor=2 if look.viewport == PHONE else 1,
    )
    context.set_default_timeout(SECONDS * 1000)
    context.add_init_script(
        "try { localStorage.setItem('mdbook-theme', '%s') } catch {}\nwindow.print = () => {}" % look.theme
    )
    return context


def is_inside(address: str, home: str) -> bool:
    """Whether a request stays with the page's own server, or with the page itself."""
    parts = urlsplit(address)
    if parts.scheme in ("data", "blob", "about"):
        return True
    if urlsplit(home).scheme == "file":
        # A report is one file: anything else that it asks for is missing once it is sent around.
        return urldefrag(address).url.partition("?")[0] == home
    return address.startswith(home + "/")


def open_page(context: BrowserContext, address: str, home: str) -> tuple[Page, Troubles]:
    """Opens `address`; requests to anywhere but `home` are written down and not let out."""
    troubles = Troubles()
    page = context.new_page()

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not _is_about_a_blocked_request(message):
            troubles.console.append(message.text)

    def on_response(response: Response) -> None:
        if response.status >= 400:
            troubles.missing.append(f"{response.url} ({response.status})")

    def on_failure(request: Request) -> None:
        if is_inside(request.url, home) and request.failure != "net::ERR_ABORTED":
            troubles.missing.append(f"{request.url} ({request.failure})")

    page.on("console", on_console)
    page.on("pageerror", lambda error: troubles.console.append(str(error)))
    page.on("response", on_response)
    page.on("requestfailed", on_failure)
    page.on("request", lambda r: None if is_inside(r.url, home) else troubles.outside.append(r.url))
    page.on("websocket", lambda socket: troubles.outside.append(socket.url))
    page.route(lambda url: not is_inside(url, home), lambda route: route.abort())
    page.goto(address, wait_until="load")
    _scroll_through(page)
    page.wait_for_function(EVERYTHING_IS_HERE)
    return page, troubles


def _scroll_through(page: Page) -> None:
    """What loads lazily, loads now."""
    page.evaluate(
        """async () => {
            for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
                scrollTo(0, y);
                await new Promise(requestAnimationFrame);
            }
            scrollTo(0, 0);
        }"""
    )


def _is_about_a_blocked_request(message: ConsoleMessage) -> bool:
    """Blocking a request makes Chromium complain; the request itself is reported already."""
    return "net::ERR_FAILED" in message.text or "Failed to load resource" in message.text
