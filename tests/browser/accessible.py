"""Whether everybody can use a page: axe-core's rules for WCAG 2.2, levels A and AA."""

from contextlib import contextmanager
from typing import Iterator

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

LEVELS = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# The rules among them that each theme may break for itself.
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}

# The page's own scripts may answer to what unfolds, at the next frame.
UNFOLD = """async () => {
    for (const fold of document.querySelectorAll("details:not([open])")) {
        fold.dataset.wasFolded = "";
        fold.open = true;
    }
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
}"""
FOLD = """() => {
    for (const fold of document.querySelectorAll("details[data-was-folded]")) {
        fold.open = false;
        delete fold.dataset.wasFolded;
    }
}"""

_axe = Axe()


def obstacles(page: Page, without: str | None = None) -> tuple[list[str], list[str]]:
    """What breaks a rule by its colours, and what breaks any other rule, outside of `without`."""
    broken = _run(page, LEVELS, without)
    faint = [line for rule in COLOURS["values"] for line in broken.pop(rule, [])]
    return faint, [line for lines in broken.values() for line in lines]


def faint(page: Page, without: str | None = None) -> list[str]:
    """What breaks a rule by its colours."""
    return [line for lines in _run(page, COLOURS, without).values() for line in lines]


def _run(page: Page, rules: dict, without: str | None) -> dict[str, list[str]]:
    """A line for each element that breaks a rule, by the rule's name. What is folded counts, and
    flamegraphs are documents of their own, drawn by inferno."""
    options = {"runOnly": rules, "resultTypes": ["violations"], "iframes": False}
    context = {"exclude": [[without]]} if without else None
    with _unfolded(page):
        violations = _axe.run(page, context, options=options).response["violations"]
    return {broken["id"]: [_line(broken["id"], node) for node in broken["nodes"]] for broken in violations}


def _line(rule: str, node: dict) -> str:
    why = [failed["message"] for failed in node["any"] + node["all"] + node["none"]]
    return f"{rule}: {node['html'][:90]}: {'; '.join(why)}"


@contextmanager
def _unfolded(page: Page) -> Iterator[None]:
    page.evaluate(UNFOLD)
    try:
        yield
    finally:
        page.evaluate(FOLD)
