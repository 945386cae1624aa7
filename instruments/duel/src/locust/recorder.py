"""Counts what users get while a load is recorded. Locust reads it beside the file of the load itself:

    locust -f LOAD.py,recorder.py --master --headless …

Locust's own statistics round latencies, and workers send them when it suits them. Here each worker counts in
a span of its own, which begins once all users are there and warm, and sends what it saw when they have stopped.
"""

import collections
import json
import time

import gevent
from locust import __version__, events
from locust.runners import MasterRunner

# How long a word of the master may take to its workers.
HEARD = 0.3
# How long the master waits for what a worker saw.
LATE = 10.0


@events.init_command_line_parser.add_listener
def add_options(parser):
    parser.add_argument("--warm-up", type=float, default=1.0, help="Seconds of load before anything is recorded")
    parser.add_argument("--seconds", type=float, default=10.0, help="Seconds of recorded load")
    parser.add_argument("--summary", default="", include_in_web_ui=False, help="Where the master writes what it got")


@events.init.add_listener
def prepare(environment, **_kwargs):
    if isinstance(environment.runner, MasterRunner):
        Collector(environment)
    else:
        Recorder(environment)


class Recorder:
    """What the users of this worker get."""

    def __init__(self, environment):
        self.environment = environment
        self.errors = collections.Counter()
        # Right answers, those outside the span included.
        self.right = 0
        # Milliseconds to three digits, and how many answers took so long; by request.
        self.routes = collections.defaultdict(collections.Counter)
        self.began = self.ended = None
        environment.events.spawning_complete.add_listener(self.begin)
        environment.events.request.add_listener(self.note)
        environment.events.test_stop.add_listener(self.send)

    def note(self, name, response_time, exception=None, **_kwargs):
        # A fault while the users come is a fault.
        if exception is not None:
            self.errors[str(exception)] += 1
            return
        self.right += 1
        if self.began and not self.ended:
            self.routes[name][f"{response_time:.3g}"] += 1

    def begin(self, **_kwargs):
        gevent.spawn(self.record)

    def record(self):
        options = self.environment.parsed_options
        gevent.sleep(options.warm_up)
        self.began = Spent()
        gevent.sleep(options.seconds)
        self.ended = self.ended or Spent()

    def send(self, **_kwargs):
        """All users have stopped."""
        # On a busy machine that may be so before the span is over.
        began, ended = self.began or Spent(), self.ended or Spent()
        self.ended = ended
        seconds = ended.at - began.at
        shares = seconds or 1.0
        self.environment.runner.send_message(
            "recorded",
            {
                "seconds": seconds if self.began else 0.0,
                "used": (ended.used - began.used) / shares,
                "waited": None if ended.waited is None else (ended.waited - began.waited) / shares,
                "right": self.right,
                "routes": {name: dict(counts) for name, counts in self.routes.items()},
                "errors": dict(self.errors),
            },
        )


class Spent:
    """CPU time of this process up to now: used, and waited for while it was ready to run."""

    def __init__(self):
        self.at, self.used = time.perf_counter(), time.process_time()
        try:
            # Of the first thread, which is the one that sends; on Linux.
            with open("/proc/self/schedstat", encoding="ascii") as file:
                self.waited = int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            self.waited = None


class Collector:
    """Ends the load, and writes what all workers saw."""

    def __init__(self, environment):
        self.environment = environment
        self.workers = []
        environment.runner.register_message("recorded", self.collect)
        environment.events.spawning_complete.add_listener(self.begin)
        environment.events.quitting.add_listener(self.write)

    def begin(self, **_kwargs):
        gevent.spawn(self.end)

    def end(self):
        options, runner = self.environment.parsed_options, self.environment.runner
        # The spans of the workers begin when they hear what the master knows now.
        gevent.sleep(options.warm_up + options.seconds + HEARD)
        runner.stop()
        until = time.monotonic() + LATE
        while len(self.workers) < options.expect_workers and time.monotonic() < until:
            gevent.sleep(0.05)
        runner.quit()

    def collect(self, msg, **_kwargs):
        self.workers.append(msg.data)

    def write(self, **_kwargs):
        with open(self.environment.parsed_options.summary, "w", encoding="utf-8") as file:
            json.dump({"version": __version__, "workers": self.workers}, file)
        # What it means is judged by who reads it.
        self.environment.process_exit_code = 0
