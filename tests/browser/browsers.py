"""Browsers side by side, one a process: a visit waits for pictures and timers more than it works."""

import multiprocessing
import multiprocessing.util
import os
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

from playwright.sync_api import Browser, sync_playwright
from visit import launch

# Runs a function of a browser and its other arguments in one of the processes.
Submit = Callable[..., Future]

_browser: Browser | None = None


@contextmanager
def browsers(chromium: Path) -> Iterator[Submit]:
    """As many browsers as processors. What is submitted must be found by its module and name."""
    with ProcessPoolExecutor(
        os.cpu_count(),
        # A forked process would share the parent's connections.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(chromium,),
    ) as pool:
        yield lambda function, *rest: pool.submit(_with_browser, function, *rest)


def _begin(chromium: Path) -> None:
    global _browser
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    playwright = sync_playwright().start()
    _browser = launch(playwright, chromium)
    multiprocessing.util.Finalize(None, lambda: (_browser.close(), playwright.stop()), exitpriority=1)


def _end_with_the_parent() -> None:
    """Whatever ended it: a pool's processes would wait for work for ever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _with_browser(function: Callable[..., Any], *rest: Any) -> Any:
    return function(_browser, *rest)
