"""What the chapters' Locust scripts share: a user that checks every answer, a measurement that
begins once all users are there and warm, and thresholds that decide the exit code.

Runs as one process, or as a master with workers; then the thresholds are judged on the master.
See docs/generator.md.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import json
import logging
import math
import os
import random
import time
from dataclasses import dataclass
from typing import ClassVar

import gevent
from geventhttpclient import HTTPClient
from geventhttpclient.url import URL
from locust import FastHttpUser, events, task
from locust import __version__ as locust_version
from locust.exception import CatchResponseError
from locust.runners import MasterRunner, WorkerRunner

log = logging.getLogger("workshop")

# The same as k6's, so that one rule holds for both: 99 is a missed threshold.
THRESHOLD_MISSED = 99
# The names under which Locust keeps the kinds of requests apart.
READS, WRITES, BYSTANDERS = "reads", "writes", "bystanders"
# Requests of users who give up: closed before an answer came, or answered by 503. They are no faults.
LOST = "given up or refused"
QUANTILES = (0.0, 0.25, 0.5, 0.66, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0)


# The share of answers that must come within a limit. Other programs on the machine lengthen some answers; a fault
# lengthens all of them. So the faster quarter tells the two apart.
QUARTER = 0.25


@dataclass(frozen=True)
class Limits:
    """What a fixed service keeps to on a busy machine, too, derived from the time its answer cannot do without."""

    call_s: float
    # Milliseconds, where a chapter has its own.
    quarter_within_ms: float | None = None
    # Requests per second that the service can answer at most.
    capacity: float = math.inf

    @property
    def quarter_ms(self) -> float:
        """Four times the unavoidable: there is no queue."""
        return self.quarter_within_ms or 4 * self.call_s * 1000

    def per_second(self, users: int, think_s: float) -> float:
        """Half of what Little's law lets so many users ask for, or of what the service can answer."""
        return 0.5 * min(users / (think_s + self.call_s), self.capacity)


@dataclass(frozen=True)
class Exchange:
    """A request, a `POST` where there is a body, and its one right answer."""

    path: str
    answer: str
    body: str | None = None


@dataclass(frozen=True)
class Bystander:
    """A `GET` of a bystander, paced in an open loop beside the users, and what it keeps to."""

    path: str
    answer: str
    per_second: float
    # A quarter of them are answered within so many milliseconds.
    quarter_within_ms: float


class ChapterUser(FastHttpUser):
    """Thinks, asks, and checks the answer. A chapter says what to ask and what to expect."""

    abstract = True
    host = "http://127.0.0.1:8080"
    path: ClassVar[str]
    answer: ClassVar[str]
    # A POST where there is one.
    body: ClassVar[str | None] = None
    # The other request, and its share of all.
    write: ClassVar[Exchange | None] = None
    write_share: ClassVar[float] = 0.0
    bystander: ClassVar[Bystander | None] = None
    # The load unless it is given from the outside. Some chapters have so many users for each
    # CPU of this machine.
    users: ClassVar[int]
    users_per_cpu: ClassVar[int | None] = None
    think: ClassVar[float]
    limits: ClassVar[Limits | None] = None
    # Instead of limits: how many times as long as with nobody else there the median answer may take.
    times_alone: ClassVar[float | None] = None
    # Seconds after which a user closes its connection, where users do.
    give_up: ClassVar[float | None] = None
    numbers: ClassVar[itertools.count] = itertools.count()

    def __init__(self, environment) -> None:
        # Read by FastHttpUser when it makes its client.
        self.connection_timeout = self.network_timeout = self.give_up or environment.parsed_options.time_out
        self.number = next(self.numbers)
        super().__init__(environment)

    def on_start(self) -> None:
        # Locust starts users in one batch a second, which would come back as one for ever.
        gevent.sleep(random.uniform(0, think_of(self.environment)))

    def wait_time(self) -> float:
        # On average the think time. Users who always pause alike would meet the same others, or
        # never meet any, for as long as the load lasts.
        return think_of(self.environment) * random.uniform(0.9, 1.1)

    @task
    def ask(self) -> None:
        if self.has_left():
            gevent.sleep(1)
            return
        if self.write and random.random() < self.environment.parsed_options.write_share:
            self.send(self.write, WRITES)
        else:
            self.send(Exchange(self.path, self.answer, self.body), READS)

    def has_left(self) -> bool:
        """Whether this user has gone, because the calm part of the load has begun."""
        options = self.environment.parsed_options
        measurement = self.environment.measurement
        if options.calm_after is None or measurement.start is None:
            return False
        is_calm = time.perf_counter() - measurement.start >= options.calm_after
        return is_calm and self.number % 100 >= 100 * options.calm_share

    def send(self, exchange: Exchange, name: str) -> None:
        with self.client.request(
            "GET" if exchange.body is None else "POST",
            exchange.path,
            data=exchange.body,
            headers=headers_of(exchange.body),
            name=name,
            catch_response=True,
        ) as response:
            if self.give_up and (response.status_code == 503 or is_given_up(response)):
                response.request_meta["name"] = LOST
                response.success()
            elif response.status_code == 0:
                response.failure(f"connection: {type(response.error).__name__}")
            elif response.status_code != 200:
                response.failure(f"status {response.status_code}")
            elif response.text != exchange.answer:
                response.failure(f"wrong answer: {response.text[:200]}")


def is_given_up(response) -> bool:
    """Whether no answer came in time. The client wraps what happened."""
    error = response.error if response.status_code == 0 else None
    return isinstance(getattr(error, "original", error), TimeoutError)


def headers_of(body: str | None) -> dict[str, str] | None:
    if body is None:
        return None
    return {"Content-Type": "application/json" if body[:1] in "{[" else "text/plain; charset=utf-8"}


def cpus() -> int:
    """How many of them this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def think_of(environment) -> float:
    """Seconds between an answer and the next request."""
    return environment.parsed_options.think


@events.init_command_line_parser.add_listener
def add_options(parser) -> None:
    # The chapter's script has been read by now. Locust's page has a field for each option, and sends what has no
    # default as an empty text.
    (chapter,) = ChapterUser.__subclasses__()
    parser.add_argument(
        "--think",
        type=float,
        default=float(chapter.think),
        help="Seconds a user pauses between an answer and the next request (default: the chapter's)",
    )
    parser.add_argument(
        "--write-share",
        type=float,
        default=float(chapter.write_share),
        help="Share of the requests that write (default: the chapter's)",
    )
    parser.add_argument(
        "--bystanders-per-second",
        type=float,
        default=float(chapter.bystander.per_second if chapter.bystander else 0),
        help="Requests of bystanders per second, 0 for none (default: the chapter's)",
    )
    parser.add_argument(
        "--warm-up", type=float, default=2.0, help="Seconds, once all users are there, that are not measured"
    )
    parser.add_argument(
        "--calm-after",
        type=float,
        default=None,
        include_in_web_ui=False,
        help="Seconds of measurement after which some users leave",
    )
    parser.add_argument(
        "--calm-share", type=float, default=0.5, include_in_web_ui=False, help="Share of the users who stay then"
    )
    parser.add_argument(
        "--alone-ms",
        type=float,
        default=0.0,
        help="What an answer takes with nobody else there, for chapters that compare with it (default: found out)",
    )
    parser.add_argument("--time-out", type=float, default=60.0, help="Seconds without an answer that make an error")
    parser.add_argument(
        "--summary", metavar="FILE", default="", include_in_web_ui=False, help="Write what was measured to FILE as JSON"
    )
    if chapter.users_per_cpu:
        chapter.users = chapter.users_per_cpu * cpus()
    parser.set_defaults(num_users=chapter.users, spawn_rate=100, run_time="30s")


class Measurement:
    """Forgets everything up to the steady state, except faults."""

    def __init__(self, environment) -> None:
        self.environment = environment
        self.start: float | None = None
        self.end: float | None = None
        # Milliseconds of right answers, unrounded: Locust's own statistics round them to whole ones.
        self.latencies: list[float] = []
        # What an answer takes with nobody else there, of chapters that compare with it.
        self.alone_ms: float | None = None

    def ask_alone(self, **_kwargs) -> None:
        given = self.environment.parsed_options.alone_ms
        self.alone_ms = given or alone_ms(self.environment.host, self.environment.user_classes[0])

    def note(self, name, response_time, exception=None, **_kwargs) -> None:
        if self.start and name == READS and exception is None:
            self.latencies.append(response_time)

    def begin_after_warm_up(self, **_kwargs) -> None:
        self.start = self.end = None
        self.latencies.clear()
        gevent.spawn_later(self.environment.parsed_options.warm_up, self.begin)

    def begin(self) -> None:
        stats = self.environment.stats
        faults = stats.errors
        stats.reset_all()
        # A fault while the users came is a fault.
        stats.errors = faults
        # Not by the clock of the day, which somebody may set meanwhile.
        self.start = time.perf_counter()
        log.info("all users are there and warm: measuring from now on")

    def stop(self, **_kwargs) -> None:
        self.end = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The recorded span, whenever in it the last answer came. Ctrl-C ends it too, without a `stop`."""
        return (self.end or time.perf_counter()) - self.start if self.start else 0.0


def alone_ms(host: str, chapter: type[ChapterUser]) -> float | None:
    """The lower quartile of some requests, one after the other: what else runs there only makes them longer."""
    client = HTTPClient.from_url(URL(host or chapter.host), concurrency=1)
    headers = headers_of(chapter.body) or {}
    taken = []
    for _ in range(15):
        begin = time.perf_counter()
        try:
            if chapter.body is None:
                response = client.get(chapter.path)
            else:
                response = client.post(chapter.path, body=chapter.body, headers=headers)
            text = response.read().decode()
        except Exception as error:  # noqa: BLE001, the users will meet and report it
            log.warning("no answer while nobody else was there: %s", type(error).__name__)
            continue
        if text == chapter.answer:
            taken.append((time.perf_counter() - begin) * 1000)
    return sorted(taken)[len(taken) // 4] if taken else None


def bystander_of(environment) -> Bystander | None:
    """The chapter's bystander, unless it has none or is to send none."""
    bystander = environment.user_classes[0].bystander
    per_second = environment.parsed_options.bystanders_per_second
    return dataclasses.replace(bystander, per_second=per_second) if bystander and per_second > 0 else None


def send_bystanders(environment, bystander: Bystander) -> None:
    """Sends on a schedule, whatever the answers do. A latency counts from the scheduled moment."""
    client = HTTPClient.from_url(URL(environment.host), concurrency=64)
    begin = time.perf_counter()

    def ask(due: float) -> None:
        fault = None
        try:
            response = client.get(bystander.path)
            text = response.read().decode()
            if response.status_code != 200:
                fault = CatchResponseError(f"status {response.status_code}")
            elif text != bystander.answer:
                fault = CatchResponseError(f"wrong answer: {text[:200]}")
        except Exception as error:  # noqa: BLE001, whatever it is, it is no answer
            fault = CatchResponseError(f"connection: {type(error).__name__}")
        environment.events.request.fire(
            request_type="GET",
            name=BYSTANDERS,
            response_time=(time.perf_counter() - due) * 1000,
            response_length=0,
            exception=fault,
            context={},
        )

    number = 0
    while True:
        due = begin + number / bystander.per_second
        gevent.sleep(max(0.0, due - time.perf_counter()))
        gevent.spawn(ask, due)
        number += 1


@events.init.add_listener
def prepare(environment, **_kwargs) -> None:
    # A master sends nothing itself.
    if (bystander := bystander_of(environment)) and not isinstance(environment.runner, MasterRunner):
        sender = []
        start = lambda **_: sender.append(gevent.spawn(send_bystanders, environment, bystander))  # noqa: E731
        environment.events.test_start.add_listener(start)
        environment.events.test_stopping.add_listener(lambda **_: gevent.killall(sender))
    measurement = environment.measurement = Measurement(environment)
    if environment.user_classes[0].times_alone and not isinstance(environment.runner, WorkerRunner):
        environment.events.test_start.add_listener(measurement.ask_alone)
    environment.events.spawning_complete.add_listener(measurement.begin_after_warm_up)
    environment.events.test_stopping.add_listener(measurement.stop)
    environment.events.request.add_listener(measurement.note)
    if not isinstance(environment.runner, WorkerRunner):
        environment.events.quitting.add_listener(lambda **_: judge(environment, measurement))


def judge(environment, measurement: Measurement) -> None:
    """Sets the exit code, and says why."""
    summary = summarise(environment, measurement)
    if path := environment.parsed_options.summary:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(summary, file)
    missed = list(misses(environment, measurement, summary))
    for line in missed:
        log.error("threshold missed: %s", line)
    if missed and environment.runner.cpu_warning_emitted:
        log.error("Locust itself was at its limit: add workers before blaming the service (docs/generator.md)")
    environment.process_exit_code = THRESHOLD_MISSED if missed else 0


def summarise(environment, measurement: Measurement) -> dict:
    total = environment.stats.total
    reads = reads_of(environment)
    # `stats.get` would add a row to Locust's report.
    others = [environment.stats.entries.get((name, "GET")) for name in (BYSTANDERS, LOST)]
    others_answered = sum(entry.num_requests - entry.num_failures for entry in others if entry)
    return {
        "version": locust_version,
        "seconds": measurement.seconds,
        "completed": total.num_requests - total.num_failures - others_answered,
        "mean_ms": reads.avg_response_time,
        "min_ms": reads.min_response_time or 0.0,
        "max_ms": reads.max_response_time,
        "quantiles": quantiles(measurement.latencies, reads),
        "errors": {cause(error): error.occurrences for error in environment.stats.errors.values()},
        "per_second": [count for _second, count in sorted(total.num_reqs_per_sec.items())],
    }


def quantiles(latencies: list[float], reads) -> list[list[float]]:
    """Pairs of a share and the latency within which that share was answered."""
    if not latencies:
        # A master has its workers' statistics only.
        return [[q, reads.get_response_time_percentile(q)] for q in QUANTILES if reads.num_requests]
    rising = sorted(latencies)
    return [[q, rising[min(int(q * len(rising)), len(rising) - 1)]] for q in QUANTILES]


def reads_of(environment):
    """The statistics of all requests but writes, whose latency is another matter."""
    method = "GET" if environment.user_classes[0].body is None else "POST"
    return environment.stats.get(READS, method)


def cause(error) -> str:
    """What `ask` called a failure. Locust keeps it as an exception, workers send its repr."""
    if not isinstance(error.error, str):
        return str(error.error)
    text = error.error.removeprefix("CatchResponseError(").removesuffix(")")
    return str(ast.literal_eval(text)) if text[:1] in "'\"" and text[-1:] == text[:1] else text


def wanted_of(environment, measurement: Measurement, limits: Limits, users: int) -> float:
    """Answers per second over the whole measurement, with the users who stay to its end."""
    options = environment.parsed_options
    think, seconds = think_of(environment), measurement.seconds
    busy = limits.per_second(users, think)
    if options.calm_after is None or seconds <= options.calm_after:
        return busy
    calm = limits.per_second(int(users * options.calm_share), think)
    return (busy * options.calm_after + calm * (seconds - options.calm_after)) / seconds


def misses(environment, measurement: Measurement, summary: dict):
    """A sentence for every threshold that was missed."""
    for cause, count in summary["errors"].items():
        yield f"{count} requests failed: {cause}"
    if measurement.start is None:
        yield "nothing was measured; let the run last longer than its users take to come and warm up"
    elif not summary["completed"]:
        yield "no right answer came"
    if not summary["completed"]:
        return
    if bystander := bystander_of(environment):
        quarter = environment.stats.get(BYSTANDERS, "GET").get_response_time_percentile(QUARTER)
        if quarter > bystander.quarter_within_ms:
            yield (
                f"the fastest quarter of the bystanders' answers took up to {quarter:.0f} ms, "
                f"not {bystander.quarter_within_ms:.0f} ms"
            )
    users = environment.runner.target_user_count or environment.parsed_options.num_users
    for most in {user.times_alone for user in environment.user_classes} - {None}:
        p50 = reads_of(environment).get_response_time_percentile(0.5)
        if measurement.alone_ms is None:
            yield "nothing was answered while nobody else was there"
        elif p50 > most * measurement.alone_ms:
            times = p50 / measurement.alone_ms
            yield f"the median answer takes {times:.1f} times as long as alone, not {most:.1f}"
    for limits in {user.limits for user in environment.user_classes} - {None}:
        quarter = reads_of(environment).get_response_time_percentile(QUARTER)
        if quarter > limits.quarter_ms:
            yield f"the fastest quarter of the answers took up to {quarter:.0f} ms, not {limits.quarter_ms:.0f} ms"
        wanted = wanted_of(environment, measurement, limits, users)
        rate = summary["completed"] / summary["seconds"] if summary["seconds"] else 0.0
        if rate < wanted:
            yield f"{rate:.1f} requests per second, not {wanted:.0f}"
