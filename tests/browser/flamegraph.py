"""A flamegraph in use: click a frame, come back, search by button and by key."""

from playwright.sync_api import Dialog, Frame, Page

PICTURE = "svg#frames"
# The colour that inferno gives to what matches.
MATCH = "rgb(230,0,230)"


def frames_with_flamegraph(page: Page) -> list[Frame]:
    """The page itself, or frames in it, that hold a flamegraph with its script."""
    return [frame for frame in page.frames if frame.locator(PICTURE).count() > 0]


def troubles(page: Page, frame: Frame) -> list[str]:
    """Uses one flamegraph as a reader would; says what did not happen."""
    found = []
    boxes = frame.evaluate(
        """() => [...document.querySelectorAll("svg#frames > *")].map((g, place) => {
            const box = g.querySelector("rect");
            const [width, y] = ["width", "y"].map((name) => parseFloat(box.getAttribute(name)));
            return { place, width, y, name: g.querySelector("title").textContent };
        })"""
    )
    # The widest box that is not everything, or the topmost of a single stack: a click on it must
    # change the picture.
    parts = [b for b in boxes if 0.5 < b["width"] < 99]
    part = max(parts, key=lambda b: b["width"]) if parts else min(boxes, key=lambda b: b["y"])
    box = frame.locator("svg#frames > *").nth(part["place"])

    box.dispatch_event("click")
    widened = float(box.locator("rect").get_attribute("width").rstrip("%"))
    faded = frame.locator("svg#frames > .hide, svg#frames > .parent").count()
    if widened < 99.9 or faded == 0:
        found.append(f"a click on a box does not zoom: it is {widened} % wide and {faded} others step back")
    frame.locator("#unzoom").dispatch_event("click")
    if frame.locator("svg#frames > .hide, svg#frames > .parent").count() > 0:
        found.append("Reset Zoom does not bring the other boxes back")

    word = _searchable(part["name"])
    for way in ("button", "key"):
        asked = _search(page, frame, way, word)
        marked = frame.locator(f'svg#frames rect[fill="{MATCH}"]').count()
        said = frame.locator("#matched").text_content() or ""
        if not asked:
            found.append(f"search by {way} does not ask for a word")
        elif marked == 0 or "Matched" not in said:
            found.append(f"search by {way} for {word!r} marks {marked} boxes and says {said!r}")
        else:
            frame.locator("#search").dispatch_event("click")
            if frame.locator(f'svg#frames rect[fill="{MATCH}"]').count() > 0:
                found.append("Reset Search leaves boxes marked")
    return found


def _search(page: Page, frame: Frame, way: str, word: str) -> bool:
    asked = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept(word)

    page.once("dialog", answer)
    try:
        if way == "button":
            frame.locator("#search").dispatch_event("click")
        else:
            frame.evaluate(
                "dispatchEvent(new KeyboardEvent('keydown', { keyCode: 70, ctrlKey: true, cancelable: true }))"
            )
    finally:
        if not asked:
            page.remove_listener("dialog", answer)
    return bool(asked)


def _searchable(title: str) -> str:
    """A plain word out of `Mutex::lock (40 samples, 40.00%)`: the search takes a pattern."""
    name = title.rsplit(" (", 1)[0]
    word = max(("".join(c if c.isalnum() or c == "_" else " " for c in name)).split() or ["a"], key=len)
    return word
