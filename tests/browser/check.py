#!/usr/bin/env python3
"""Opens every page of the book, and a proof report, in headless Chromium and checks them.

    python tests/browser/check.py --book book --report .workshop/reports/chapter1.html

One line a check, exit code 0 if all passed, 1 if one failed, 2 if it could not be run.
`--self-test` damages a small site in one way at a time and demands that the right check fails.
"""

import argparse
import os
import re
import shutil
import sys
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Iterator
from urllib.parse import unquote, urldefrag, urlsplit

import accessible
import flamegraph
from browsers import Submit, browsers
from served import served
from visit import DARK, LIGHT, SMALL, Look, Troubles, Visitor, context_for

from playwright.sync_api import Browser, Error, Page

PROBE = (Path(__file__).parent / "probe.js").read_text()
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Pages that mdBook makes itself: no author gave them minutes.
NOT_WRITTEN = ("print.html", "404.html", "toc.html")
LEADS_ON = '<meta http-equiv="refresh"'
# All pages once more on one: each of them is looked at by axe on its own.
NOT_FOR_AXE = ("print.html",)
# The same on all pages, with a hundred links: looked at on the first one.
SIDEBAR = "#mdbook-sidebar"


@dataclass
class Results:
    """Findings by check; a check without findings passed."""

    findings: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def see(self, check: str, where: str, findings: list[str], of: int = 1) -> None:
        """Adds what one check found in one place, among `of` things that it looked at."""
        self.counts[check] = self.counts.get(check, 0) + of
        self.findings.setdefault(check, []).extend(f"{where}: {finding}" for finding in findings)

    def add(self, other: "Results") -> None:
        """What was seen elsewhere, too."""
        for check, findings in other.findings.items():
            self.findings.setdefault(check, []).extend(findings)
        for check, count in other.counts.items():
            self.counts[check] = self.counts.get(check, 0) + count

    def failed(self) -> list[str]:
        """Names of the checks that failed."""
        return [check for check, findings in self.findings.items() if findings]

    def lines(self, of: str) -> Iterator[str]:
        """The report for people: one line a check, and one a finding."""
        for check, findings in self.findings.items():
            if not findings:
                yield f"ok    {of}: {check} ({self.counts[check]})"
                continue
            yield f"FAIL  {of}: {check}: {len(findings)} of {self.counts[check]}"
            for finding in findings[:20]:
                yield f"      {finding}"
            if len(findings) > 20:
                yield f"      and {len(findings) - 20} more"


@dataclass
class Subject:
    """What is checked: pages under one address, backed by one folder."""

    name: str
    home: str
    folder: Path
    pages: list[str]
    wants_minutes: bool
    wants_search: bool
    allows_placeholders: bool

    def address(self, page: str) -> str:
        """Where a page is opened."""
        return self.home if urlsplit(self.home).scheme == "file" else f"{self.home}/{page}"


LOOKS = (LIGHT, DARK, SMALL)
# Leads from a picture in a page to one with the page to itself.
ALONE = "figcaption a[href$='.svg']"
# What a page says of itself, by the page's name.
Probes = dict[str, dict]


def check(browser: Browser, subject: Subject, looks: tuple[Look, ...] = LOOKS) -> Results:
    """Runs every check on every page."""
    return put_together(subject, [look_at(browser, subject, look, subject.pages) for look in looks])


def look_at(
    browser: Browser, subject: Subject, look: Look, pages: list[str], shots: Path | None = None
) -> tuple[Results, Probes]:
    """Runs the checks that one look at each of these pages allows."""
    results = Results()
    probes: Probes = {}
    with context_for(browser, look) as context:
        visitor = Visitor(context, subject.home)
        for name in pages:
            address = subject.address(name)
            page, troubles = visitor.open(address)
            probe = page.evaluate(PROBE)
            without = SIDEBAR if name != subject.pages[0] else None
            if look == LIGHT:
                probes[name] = probe
                _see_content(results, name, probe, subject)
            if look == SMALL:
                results.see("fits a phone, 390 px wide", name, probe["sticksOut"])
            if look == LIGHT:
                _see_flamegraphs(results, name, page)
                if subject.wants_search and name == subject.pages[0]:
                    results.see("search finds a word", name, _search_troubles(page))
            if name not in NOT_FOR_AXE:
                _see_obstacles(results, name, look, page, without)
            # Last, because using the page may bring out more.
            _see_troubles(results, name, look, troubles)
            shoot = partial(_shoot, page, shots, f"{subject.name}-{name.removesuffix('.html').replace('/', '-')}")
            # A picture of the whole page resizes the window, which upsets flamegraphs for a moment.
            shoot(look)
            if look == LIGHT:
                turned, troubles = visitor.turn(DARK)
                if not turned:
                    results.see(_stands_out(DARK), name, ["the menu does not change the theme"])
                elif name not in NOT_FOR_AXE:
                    _see_obstacles(results, name, DARK, page, without)
                _see_troubles(results, name, DARK, troubles)
                shoot(DARK)
                # Flamegraphs that zoom are behind the pictures that stand still.
                for alone in page.eval_on_selector_all(ALONE, "links => links.map((link) => link.href)"):
                    picture, troubles = visitor.open(alone)
                    _see_flamegraphs(results, name, picture)
                    _see_troubles(results, name, LIGHT, troubles)
                visitor.turn(LIGHT)
    return results, probes


def put_together(subject: Subject, looks: list[tuple[Results, Probes]]) -> Results:
    """All looks, and the checks that need every page."""
    results = Results()
    probes: Probes = {}
    for seen, said in looks:
        results.add(seen)
        probes |= said
    _see_links(results, subject, probes)
    if subject.wants_minutes:
        _see_minutes(results, probes)
    return results


def _see_troubles(results: Results, name: str, look: Look, troubles: Troubles) -> None:
    where = f"{name} ({look.name})"
    results.see("no error in the console", where, troubles.console)
    results.see("nothing is missing", where, troubles.missing)
    results.see("no request leaves this machine", where, troubles.outside)


def _see_obstacles(results: Results, name: str, look: Look, page: Page, without: str | None) -> None:
    """Every rule on a light desktop; in the dark those about colours; on a phone none again."""
    if look == LIGHT:
        faint, others = accessible.obstacles(page, without)
        results.see(_stands_out(look), name, faint)
        results.see("meets WCAG A and AA", name, others)
    elif look == DARK:
        results.see(_stands_out(look), name, accessible.faint(page, without))


def _stands_out(look: Look) -> str:
    return f"text stands out, {look.name} theme"


def _see_content(results: Results, name: str, probe: dict, subject: Subject) -> None:
    embedded = probe["embedded"]
    results.see(
        "images and frames are there",
        name,
        [f"{address} is no picture" for address in probe["brokenImages"]]
        + [f"{e['address']} is empty" for e in embedded if e["root"] is None]
        + [f"{e['address']} is {e['height']} px high" for e in embedded if e["height"] < 40],
        of=1 + len(embedded),
    )
    text = probe["words"]
    results.see("every include was resolved", name, [m[0] for m in re.finditer(r"\{\{#[^}]*\}\}", text)])
    if not subject.allows_placeholders:
        found = ["a placeholder stands where a recorded figure belongs"] * ("placeholder" in text.lower())
        results.see("every figure is recorded", name, found)


def _see_flamegraphs(results: Results, name: str, page: Page) -> None:
    for frame in flamegraph.frames_with_flamegraph(page):
        what = urlsplit(frame.url).path.rsplit("/", 1)[-1]
        results.see("flamegraphs zoom and search", f"{name}, {what}", flamegraph.troubles(page, frame))


def _search_troubles(page: Page) -> list[str]:
    page.keyboard.press("s")
    page.keyboard.type("Little")
    try:
        page.locator("#mdbook-searchresults li").first.wait_for()
    except Error:
        return ["typing a word that the book contains finds nothing"]
    finally:
        page.keyboard.press("Escape")
    return []


def _see_links(results: Results, subject: Subject, probes: dict[str, dict]) -> None:
    anchors = {subject.address(name): set(probe["anchors"]) for name, probe in probes.items()}
    for name, probe in probes.items():
        findings = []
        for link in probe["links"]:
            address, fragment = urldefrag(link["href"])
            address = address.partition("?")[0]
            if link["written"].startswith("#"):
                # mdBook's page for missing pages moves the base of its links.
                address = subject.address(name)
            if urlsplit(address).netloc != urlsplit(subject.home).netloc or urlsplit(address).scheme in ("mailto",):
                continue
            target = address + "index.html" if address.endswith("/") else address
            if target in anchors:
                if fragment and unquote(fragment) not in anchors[target] and fragment != "top":
                    findings.append(f"{link['written']} names an anchor that is not there")
            elif not _file_behind(target, subject).is_file():
                findings.append(f"{link['written']} leads nowhere")
        results.see("every link leads somewhere", name, findings, of=len(probe["links"]))


def _file_behind(address: str, subject: Subject) -> Path:
    path = unquote(urlsplit(address).path)
    return Path(path) if urlsplit(address).scheme == "file" else subject.folder / path.lstrip("/")


def _see_minutes(results: Results, probes: dict[str, dict]) -> None:
    for name, probe in probes.items():
        if name in NOT_WRITTEN:
            continue
        number = re.search(r"\d+", probe["minutes"] or "")
        results.see("every page says how long it takes", name, [] if number else ["no minutes at its top"])


def _shoot(page: Page, folder: Path | None, name: str, look: Look) -> None:
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        # The page of everything is hundreds of screens high.
        page.screenshot(path=folder / f"{name}-{look.name}.png", full_page=True, timeout=120_000)


def book(folder: Path, home: str, allows_placeholders: bool) -> Subject:
    """The built book as a subject."""
    # A page that only leads to where its text went is no page to look at.
    pages = [p for p in folder.rglob("*.html") if LEADS_ON not in p.read_text(encoding="utf-8")]
    pages = sorted(str(p.relative_to(folder).as_posix()) for p in pages)
    # The sidebar's own document is shown inside the pages, and only there.
    pages = ["index.html", *(p for p in pages if p not in ("index.html", "toc.html"))]
    has_search = any(folder.glob("searchindex*.js"))
    return Subject("book", home, folder, pages, True, has_search, allows_placeholders)


def report(file: Path) -> Subject:
    """A proof report, opened as its readers do: as a file."""
    file = file.resolve()
    return Subject(file.stem, file.as_uri(), file.parent, [file.name], False, False, True)


def run(submit: Submit, options: argparse.Namespace) -> bool:
    """Checks what the options name; prints; says whether all passed."""

    def looks(subject: Subject) -> list[Future]:
        # Some at a time, so that no browser is left with the long half.
        parts = [subject.pages[begin : begin + 10] for begin in range(0, len(subject.pages), 10)]
        # Dark pages are turned so while they are open; that one opens dark is seen on the first.
        looks = [(LIGHT, parts), (SMALL, parts), (DARK, [subject.pages[:1]])]
        return [submit(look_at, subject, look, part, options.shots) for look, parts in looks for part in parts]

    def end(subject: Subject, looks: list[Future]) -> bool:
        results = put_together(subject, [look.result() for look in looks])
        if subject.name != "book" and "flamegraphs zoom and search" not in results.findings:
            results.see("flamegraphs zoom and search", subject.name, ["it holds no flamegraph"])
        print(*results.lines(subject.name), sep="\n", flush=True)
        return not results.failed()

    reports = [(subject, looks(subject)) for subject in map(report, options.report)]
    passed = True
    if options.book:
        with served(options.book) as home:
            subject = book(options.book, home, options.allow_placeholders)
            passed &= end(subject, looks(subject))
    for subject, seen in reports:
        passed &= end(subject, seen)
    return passed


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--book", type=Path, metavar="FOLDER", help="a folder that mdbook built")
    parser.add_argument("--report", type=Path, metavar="FILE", action="append", default=[], help="a proof report")
    parser.add_argument("--chromium", type=Path, metavar="FILE", help="the browser [default: $CHROMIUM, or the one on the path]")
    parser.add_argument("--shots", type=Path, metavar="FOLDER", help="put a picture of every page there")
    parser.add_argument("--allow-placeholders", action="store_true", help="figures may be missing still")
    parser.add_argument("--self-test", action="store_true", help="check the checks")
    options = parser.parse_args()
    if not (options.book or options.report or options.self_test):
        parser.error("nothing to check: give --book, --report or --self-test")
    if options.book and not (options.book / "index.html").is_file():
        parser.error(f"{options.book} holds no book: run `mdbook build` first")
    for file in options.report:
        if not file.is_file():
            parser.error(f"{file} is not there: `cargo workshop prove 1` writes a report and names it")
    if options.chromium is None and "CHROMIUM" in os.environ:
        options.chromium = Path(os.environ["CHROMIUM"])
    options.chromium = options.chromium or next(
        (Path(found) for name in CHROMIUM if (found := shutil.which(name))), None
    )
    if options.chromium is None or not options.chromium.is_file():
        parser.error("no Chromium found: install one, or name it with --chromium")
    return options


def main() -> int:
    """Runs what was asked for; returns the exit code."""
    options = arguments()
    with browsers(options.chromium) as submit:
        passed = True
        if options.self_test:
            import self_test

            passed &= self_test.run(submit)
        if options.book or options.report:
            passed &= run(submit, options)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
