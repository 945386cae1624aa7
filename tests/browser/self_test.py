"""Checks the checks: a sound site passes, and each damage fails the check that is about it."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import check
from browsers import Submit
from served import served
from visit import DARK, LIGHT, SMALL

from playwright.sync_api import Browser

FIXTURE = Path(__file__).parent / "fixture"


@dataclass(frozen=True)
class Damage:
    """`old` replaced by `new` in one file of the sound site, and the check that must notice."""

    what: str
    file: str
    old: str
    new: str
    noticed_by: str


PLAIN_LINK = "<p>One of these many words is <a href='index.html' style='color: #333; text-decoration: none'>a link</a>.</p>"
FOLDED = "<details><summary>A question</summary><p style='color: #999; background: #fff'>An answer</p></details>"
TINY = "<button aria-label='tiny' style='width: 9px; height: 9px; padding: 0'></button>"

DAMAGES = [
    Damage("a broken link", "index.html", "page.html#below", "pag.html", "every link leads somewhere"),
    Damage("a broken anchor", "index.html", "#below", "#beyond", "every link leads somewhere"),
    Damage("a broken anchor in the page", "index.html", '"#top-of', '"#bottom-of', "every link leads somewhere"),
    Damage("a missing image", "index.html", "<img src=", '<img src="gone.png" title=', "images and frames are there"),
    Damage("a missing file", "index.html", "<img src=", '<img src="gone.png" title=', "nothing is missing"),
    Damage("a missing flamegraph", "index.html", '"flamegraph.svg"', '"gone.svg"', "nothing is missing"),
    Damage("a script error", "page.html", "</main>", "<script>nothing.here()</script>", "no error in the console"),
    Damage("an error that is logged", "page.html", "</main>", "<script>console.error(1)</script>", "no error in the console"),
    Damage(
        "an image from elsewhere", "page.html", "</main>", "<img src='http://elsewhere.invalid/a.png' alt=''>",
        "no request leaves this machine",
    ),
    Damage(
        "a script that asks elsewhere", "page.html", "</main>",
        "<script>fetch('https://elsewhere.invalid/').catch(() => 0)</script>", "no request leaves this machine",
    ),
    Damage(
        "a font from elsewhere", "page.html", "</head>",
        "<style>@import url(https://elsewhere.invalid/f.css);</style></head>", "no request leaves this machine",
    ),
    Damage(
        "a socket to elsewhere", "page.html", "</main>",
        "<script>new WebSocket('ws://127.0.0.1:9/')</script>", "no request leaves this machine",
    ),
    Damage("an include that failed", "page.html", "Below", "{{#include x.md}}", "every include was resolved"),
    Damage("a placeholder", "page.html", "Below", "Placeholder", "every figure is recorded"),
    Damage("grey on white", "index.html", "color: #222", "color: #999", "text stands out, light theme"),
    Damage("grey on black", "index.html", "color: #ddd", "color: #555", "text stands out, dark theme"),
    Damage("grey that is folded away", "index.html", "</main>", FOLDED, "text stands out, light theme"),
    Damage("links like other text", "page.html", "</main>", PLAIN_LINK, "text stands out, light theme"),
    Damage("a theme that is not taken", "index.html", "classList.add('navy')", "title", "text stands out, dark theme"),
    Damage("an image without a text", "index.html", 'alt="a square"', "", "meets WCAG A and AA"),
    Damage("a frame without a title", "index.html", 'title="a flamegraph"', "", "meets WCAG A and AA"),
    Damage("a field without a label", "page.html", "</main>", "<input>", "meets WCAG A and AA"),
    Damage("a button without a name", "page.html", "</main>", "<button></button>", "meets WCAG A and AA"),
    Damage("a page without a language", "page.html", ' lang="en"', "", "meets WCAG A and AA"),
    Damage("a page that cannot be enlarged", "page.html", "initial-scale=1", "user-scalable=no", "meets WCAG A and AA"),
    Damage("a box that only a mouse can scroll", "index.html", "<table>", "<table style='width: 9000px; text-align: right'>", "meets WCAG A and AA"),
    Damage("buttons too small for a finger", "page.html", "</main>", TINY * 2, "meets WCAG A and AA"),
    Damage("a table that widens the page", "index.html", "overflow-x: auto", "", "fits a phone, 390 px wide"),
    Damage("a page without minutes", "page.html", "4 minutes", "some minutes", "every page says how long it takes"),
    Damage("a zoom that does nothing", "flamegraph.svg", "function zoom(node) {", "function zoom(node) { return;", "flamegraphs zoom and search"),
    Damage("a search that marks nothing", "flamegraph.svg", "function search(term) {", "function search(term) { return;", "flamegraphs zoom and search"),
    Damage("a search key that is dead", "flamegraph.svg", "e.keyCode === 70", "e.keyCode === 71", "flamegraphs zoom and search"),
]

# Checks that need another look at the page than a light desktop's.
LOOKS = {"fits a phone, 390 px wide": (LIGHT, SMALL)}

# inferno's script keeps its state in the address, which a document inside another has not.
NO_ADDRESS = "<script>history.replaceState = () => {}</script>"

# What a damage must also upset, because one cause has two symptoms.
ALSO = {
    "links like other text": {"text stands out, dark theme"},
    "grey that is folded away": {"text stands out, dark theme"},
    "a missing image": {"nothing is missing"},
    "a missing file": {"images and frames are there"},
    "an image from elsewhere": {"images and frames are there"},
    "a socket to elsewhere": {"no error in the console"},
}


def run(submit: Submit) -> bool:
    """Tries the sound site and every damage; prints a line each; says whether all went as it must."""
    tried = [submit(expect, damage) for damage in (None, *DAMAGES)] + [submit(expect_report)]
    passed = True
    for attempt in tried:
        right, lines = attempt.result()
        print(lines, flush=True)
        passed &= right
    return passed


def expect(browser: Browser, damage: Damage | None) -> tuple[bool, str]:
    """Whether the checks say of a damage (or of none) what they must, and the line for it."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        shutil.copytree(FIXTURE, site)
        if damage:
            _apply(damage, site)
        with served(site) as home:
            looks = LOOKS.get(damage.noticed_by, (LIGHT,)) if damage else (LIGHT, DARK, SMALL)
            failed = set(check.check(browser, check.book(site, home, False), looks).failed())
    wanted = {damage.noticed_by} if damage else set()
    allowed = wanted | ALSO.get(damage.what, set()) if damage else wanted
    right = wanted <= failed <= allowed
    return right, _said(right, damage.what if damage else "a sound site", failed)


def expect_report(browser: Browser) -> tuple[bool, str]:
    """A report is one file: with its flamegraph inside it is sound, with it beside it is not."""
    page = (FIXTURE / "index.html").read_text().replace('<a href="page.html#below">Another page</a>, ', "")
    picture = (FIXTURE / "flamegraph.svg").read_text().partition("?>")[2]
    beside = 'src="flamegraph.svg"'
    cases = [
        ("whole", _inside(NO_ADDRESS + picture), set()),
        ("stuck", _inside(picture), {"flamegraphs zoom and search", "no error in the console"}),
        ("torn", beside, {"no request leaves this machine", "images and frames are there"}),
    ]
    passed, lines = True, []
    with tempfile.TemporaryDirectory() as folder:
        for name, frame, wanted in cases:
            file = Path(folder) / f"{name}.html"
            file.write_text(page.replace(beside, frame))
            failed = set(check.check(browser, check.report(file)).failed())
            passed &= failed == wanted
            lines.append(_said(failed == wanted, f"a {name} report", failed))
    return passed, "\n".join(lines)


def _inside(document: str) -> str:
    return 'srcdoc="%s"' % document.replace("&", "&amp;").replace('"', "&quot;")


def _said(right: bool, what: str, failed: set[str]) -> str:
    return f"{'ok   ' if right else 'FAIL '} self-test: {what}: {', '.join(sorted(failed)) or 'nothing to say'}"


def _apply(damage: Damage, site: Path) -> None:
    file = site / damage.file
    text = file.read_text()
    if damage.old not in text:
        raise ValueError(f"{damage.what}: {damage.old!r} is not in {damage.file}")
    file.write_text(text.replace(damage.old, damage.new, 1))
