"""The published service of chapters 1 to 3, with the published users: `cargo run -p chapter3 --example published`.

    locust -f locust/published.py --host http://127.0.0.1:8080 --route /cpualloc                              (web page)
    locust -f locust/published.py --host http://127.0.0.1:8080 --route /cpualloc -u 8 -t 30s --headless --think 0.5

It ends with exit code 99 for wrong answers only, since the article has no limits.
"""

from common import ChapterUser
from locust import events

ANSWERS = {"/read": "6", "/fast": "6", "/cpualloc": "500005500000", "/cpu": "500005500000"}


class Visitor(ChapterUser):
    users = 8
    think = 0.5


@events.init_command_line_parser.add_listener
def add_route(parser) -> None:
    parser.add_argument("--route", choices=list(ANSWERS), default="/cpualloc", help="The route that users ask for")


@events.init.add_listener
def take_route(environment, **_kwargs) -> None:
    Visitor.path = environment.parsed_options.route
    Visitor.answer = ANSWERS[Visitor.path]
