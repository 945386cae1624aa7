"""Visits: pages opened in Chromium, with all that went wrong meanwhile."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Request, Response

# As root in a container Chromium needs `--no-sandbox`; the others keep the browser itself from
# looking for the network, so that every request seen is the page's own. Whatever a page asks others
# for goes to a proxy that nobody runs, which loopback does without: letting this program stop it
# would have every request wait for it, and nothing kept from page to page.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--proxy-server=http://127.0.0.1:9",
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

# Says whether the page has taken the theme; a report has no menu. Colours that fade need not.
TAKE_THEME = """async (theme) => {
    const choice = document.getElementById("mdbook-theme-" + theme);
    choice?.click();
    await new Promise(requestAnimationFrame);
    for (const change of document.getAnimations()) {
        try {
            change.finish();
        } catch {} // One without an end.
    }
    return choice === null || document.documentElement.classList.contains(theme);
}"""

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SECONDS = 60


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


class Visitor:
    """One tab, in which pages are opened one after the other: a tab for each would be a new process
    for each. Requests to anywhere but `home` are written down, and lead nowhere."""

    def __init__(self, context: BrowserContext, home: str) -> None:
        self.home = home
        self.page: Page = context.new_page()
        self.troubles = Troubles()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.troubles.console.append(str(error)))
        self.page.on("response", self._on_response)
        self.page.on("requestfailed", self._on_failure)
        self.page.on("request", self._on_request)
        self.page.on("websocket", lambda socket: self.troubles.outside.append(socket.url))

    def open(self, address: str) -> tuple[Page, Troubles]:
        """Opens `address`, whose troubles are those from here to the next page."""
        self.troubles = Troubles()
        self.page.goto(address, wait_until="load")
        _scroll_through(self.page)
        self.page.wait_for_function(EVERYTHING_IS_HERE)
        return self.page, self.troubles

    def turn(self, look: Look) -> tuple[bool, Troubles]:
        """Gives the open page the look's theme as readers do, by the book's menu and by their
        system's setting; whether it took it, and what troubles that brings."""
        self.troubles = Troubles()
        self.page.emulate_media(color_scheme=look.scheme)
        return self.page.evaluate(TAKE_THEME, look.theme), self.troubles

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not _is_about_a_blocked_request(message):
            self.troubles.console.append(message.text)

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.missing.append(f"{response.url} ({response.status})")

    def _on_failure(self, request: Request) -> None:
        if is_inside(request.url, self.home) and request.failure != "net::ERR_ABORTED":
            self.troubles.missing.append(f"{request.url} ({request.failure})")

    def _on_request(self, request: Request) -> None:
        if not is_inside(request.url, self.home):
            self.troubles.outside.append(request.url)


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
