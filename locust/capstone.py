"""The capstone's ticket shop: users who look around, buy, look at their orders and organise, with the same journeys as
`cargo workshop capstone bench`, but of a fixed number.

    locust -f locust/capstone.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/capstone.py --host http://127.0.0.1:8080 -u 20 -r 100 -t 65s --headless

Ends with exit code 99 when a route misses its objective or a journey breaks, and tells the score with so many users.
Locust's own limit: one process uses one CPU, and takes more of it for a request than k6 (docs/generator.md). Let several
share the users, also on several machines, each with this repository:

    locust -f locust/capstone.py --worker --master-host ADDRESS                (one for each CPU)
    locust -f locust/capstone.py --master --expect-workers 2 -u 200 -t 65s --headless

With --presale all users come to buy seats of one event, as when a sale begins; not for a score.

The shop listens on its own machine only. On another one, this makes it look as if it were there:

    ssh -N -L 8080:127.0.0.1:8080 ADDRESS
"""

from __future__ import annotations

import itertools
import logging
import random
import re
import time
from pathlib import Path

import gevent
from locust import FastHttpUser, events, task
from locust.runners import WorkerRunner

log = logging.getLogger("workshop")

# The same as k6's, so that one rule holds for both: 99 is a missed threshold.
THRESHOLD_MISSED = 99
PASSWORD = "correct horse"
CUSTOMERS, ORGANISERS, EVENTS_OF_EACH = 4800, 200, 10
# After so many journeys somebody else comes; of those who log in, one in so many signs up first.
JOURNEYS, SIGN_UPS = 10, 4
# The payment service declines users whose number is a multiple of this.
DECLINED = 100
# Seconds between an answer and the next request, half of it to three halves.
THINK = 0.1
POSTER = 100_000
# The event that all want in a presale.
PRESALE = 1000
CATEGORIES = ["comedy", "concert", "dance", "reading", "theatre"]
WORDS = "blue electric garden golden harbour lanterns lost monday northern silver velvet wild".split()

# What is in time, how frequent each journey is, and what it is worth.
TABLE = (Path(__file__).parent / "../crates/shop-bench/objectives.toml").read_text(encoding="utf-8")
WITHIN_MS = {route: int(ms) for route, ms in re.findall(r"^(\w+) = (\d+)$", TABLE, re.M)}
KINDS = {
    name: (int(share), int(worth))
    for name, share, worth in re.findall(r"^(\w+) = \{ share = (\d+), worth = (\d+) \}$", TABLE, re.M)
}
# Under which Locust keeps journeys apart from requests.
IN_TIME, LATE = "journey", "late journey"


def turns():
    """Each kind has its share of any few journeys: the one that has waited longest for it is next."""
    credit = dict.fromkeys(KINDS, 0)
    while True:
        for kind, (share, _worth) in KINDS.items():
            credit[kind] += share
        kind = max(credit, key=credit.get)
        credit[kind] -= sum(share for share, _worth in KINDS.values())
        yield kind


TURNS = turns()


class Broken(Exception):
    """Why a journey ended before its end."""


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def think() -> None:
    gevent.sleep(THINK * random.uniform(0.5, 1.5))


class Visitor(FastHttpUser):
    host = "http://127.0.0.1:8080"
    connection_timeout = network_timeout = 10.0
    journeys = 0
    # The number of the account, while the user is logged in.
    account: int | None = None
    in_time = True

    @task
    def travel(self) -> None:
        if self.journeys == JOURNEYS:
            self.come_anew()
        self.journeys += 1
        self.in_time = True
        kind = "buy" if self.environment.parsed_options.presale else next(TURNS)
        broken, began = None, time.perf_counter()
        try:
            kind = getattr(self, kind)() or kind
        except Broken as why:
            broken = why
        self.environment.events.request.fire(
            request_type=IN_TIME if self.in_time or broken else LATE,
            name=kind,
            response_time=(time.perf_counter() - began) * 1000,
            response_length=0,
            exception=broken,
            context={},
        )
        if broken:
            self.come_anew()
            think()

    def come_anew(self) -> None:
        self.client.cookiejar.clear()
        self.journeys, self.account = 0, None

    def browse(self) -> None:
        check('id="next"' in self.ask("home", "/").text, "home: lists nothing")
        think()
        listed = self.ask("list", f"/events?category={random.choice(CATEGORIES)}&page={random.randrange(5)}")
        event = event_of("list", listed)
        think()
        self.look_at(event)
        think()
        event = self.search()
        think()
        self.look_at(event)

    def buy(self) -> str | None:
        """Returns another kind if it became that: a visitor who finds no seats, or whose payment is declined, has browsed."""
        self.log_in()
        event = PRESALE if self.environment.parsed_options.presale else self.search()
        think()
        self.look_at(event)
        think()
        order = self.reserve(event)
        if order is None:
            return "browse"
        think()
        is_declined = self.account % DECLINED == 0
        paid = self.ask("pay", f"/orders/{order}/pay", data="null", expected=(409,) if is_declined else (200,))
        if is_declined:
            return "browse"
        tickets = json_of("pay", paid).get("tickets")
        check(bool(tickets), "pay: answers no ticket")
        for ticket in tickets:
            png = self.ask("ticket", f"/tickets/{ticket['code']}").content
            check(png.startswith(b"\x89PNG"), "ticket: is no PNG")
        orders = self.ask("orders", "/orders").text
        check(f'id="order-{order}" class="paid"' in orders, f"orders: order {order} is not there")
        return None

    def reserve(self, event: int) -> int | None:
        """The order; none if nothing is left."""
        for _attempt in range(5):
            seats = json_of("seats", self.ask("seats", f"/events/{event}/seats"))["seats"]
            free = [seat["id"] for seat in seats if seat["is_free"]]
            if not free:
                return None
            wanted = min(random.randint(1, 2), len(free))
            first = random.randint(0, len(free) - wanted)
            think()
            body = {"seats": free[first : first + wanted]}
            answer = self.ask("reserve", f"/events/{event}/reserve", json=body, expected=(201, 409))
            if answer.status_code == 201:
                order = json_of("reserve", answer).get("order")
                check(order is not None, "reserve: no order")
                return order
            # Somebody else was faster.
            think()
        return None

    def look_up(self) -> None:
        self.log_in()
        check("<h1>Your orders</h1>" in self.ask("orders", "/orders").text, "orders: is another page")

    def organise(self) -> None:
        # Another browser than the buyer's.
        self.come_anew()
        organiser = random.randint(1, ORGANISERS)
        self.enter(f"organiser{organiser}@example.com")
        report = json_of("report", self.ask("report", "/organiser/report"))
        check(len(report["events"]) == EVENTS_OF_EACH, "report: has other events")
        think()
        event = organiser + ORGANISERS * random.randrange(EVENTS_OF_EACH)
        poster = bytes([random.randrange(256)]) * POSTER
        png = {"Content-Type": "image/png"}
        self.ask("upload", f"/organiser/events/{event}/poster", data=poster, headers=png, expected=(204,))
        length = len(self.ask("poster", f"/events/{event}/poster").content)
        self.come_anew()
        check(length == POSTER, f"poster: has {length} bytes")

    def search(self) -> int:
        return event_of("search", self.ask("search", f"/search?q={random.choice(WORDS)}"))

    def look_at(self, event: int) -> None:
        page = json_of("event", self.ask("event", f"/events/{event}"))
        check(page.get("id") == event, "event: is another one")

    def log_in(self) -> None:
        """Signs up, or logs in, unless that was done."""
        if self.account is not None:
            return
        if random.randrange(SIGN_UPS) == 0:
            form = {"email": f"new{random.getrandbits(64):x}@example.org", "name": "Ada", "password": PASSWORD}
            account = json_of("sign_up", self.ask("sign_up", "/signup", json=form, expected=(201,)))
        else:
            account = self.enter(f"user{random.randint(1, CUSTOMERS)}@example.com")
        self.account = account["id"]
        think()

    def enter(self, email: str) -> dict:
        return json_of("log_in", self.ask("log_in", "/login", json={"email": email, "password": PASSWORD}))

    def ask(self, route: str, path: str, expected=(200,), **sent):
        """A `POST` where there is a body. Other answers than the expected break the journey."""
        method = "POST" if sent else "GET"
        if sent.get("data") == "null":
            sent["headers"] = {"Content-Type": "application/json"}
        began = time.perf_counter()
        with self.client.request(method, path, name=route, catch_response=True, **sent) as response:
            self.in_time &= (time.perf_counter() - began) * 1000 <= WITHIN_MS[route]
            if response.status_code in expected:
                response.success()
                return response
            why = response.status_code or type(response.error).__name__
            response.failure(f"{route}: {why}")
        raise Broken(f"{route}: {why}")


def json_of(route: str, response):
    try:
        return response.json()
    except ValueError as error:
        raise Broken(f"{route}: {error}") from error


def event_of(route: str, response) -> int:
    """One of those that are listed."""
    listed = json_of(route, response)
    check(bool(listed), f"{route}: finds nothing")
    return random.choice(listed)["id"]


@events.init_command_line_parser.add_listener
def add_options(parser) -> None:
    parser.add_argument(
        "--warm-up", type=float, default=5.0, help="Seconds, once all users are there, that are not measured"
    )
    parser.add_argument("--presale", action="store_true", help="All users want seats of one event")
    parser.set_defaults(num_users=20, spawn_rate=100, run_time="65s")


@events.init.add_listener
def prepare(environment, **_kwargs) -> None:
    # Workers send what they count to the master, which judges it.
    if isinstance(environment.runner, WorkerRunner):
        return
    stats = environment.stats

    def forget() -> None:
        # A fault while the users came is a fault.
        errors = stats.errors
        stats.reset_all()
        stats.errors = errors

    warm_up = environment.parsed_options.warm_up
    environment.events.spawning_complete.add_listener(lambda **_: gevent.spawn_later(warm_up, forget))
    environment.events.quitting.add_listener(lambda **_: judge(environment))


def judge(environment) -> None:
    """Tells the score, sets the exit code, and says why."""
    stats = environment.stats
    seconds = (stats.total.last_request_timestamp or 0) - stats.total.start_time
    missed = [f"{error.occurrences} times {error.name}: {error.error}" for error in stats.errors.values()]
    worth = completed = late = 0
    for (name, kind), entry in stats.entries.items():
        right = entry.num_requests - entry.num_failures
        if kind == IN_TIME:
            completed += right
            worth += KINDS[name][1] * right
        elif kind == LATE:
            late += right
        elif (p99 := entry.get_response_time_percentile(0.99)) > WITHIN_MS[name]:
            missed.append(f"99 % of {name} within {p99:.0f} ms, not {WITHIN_MS[name]} ms")
    broken = sum(error.occurrences for error in stats.errors.values() if error.name in KINDS)
    score = worth / seconds if seconds > 0 else 0.0
    log.info("%d journeys in time, %d late, %d broken; score %.1f", completed, late, broken, score)
    if not completed:
        missed.append("no journey in time")
    for line in missed:
        log.error("threshold missed: %s", line)
    environment.process_exit_code = THRESHOLD_MISSED if missed else 0
