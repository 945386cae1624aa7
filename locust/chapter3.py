"""Chapter 3: a clone in a hot loop.

    locust -f locust/chapter3.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter3.py --host http://127.0.0.1:8080 -u 12 -r 100 -t 30s --headless --think 1

The same script ends with exit code 99 on the problem and 0 on the solution.
"""

from common import ChapterUser, Limits


class Reader(ChapterUser):
    path = "/clients/0"
    answer = "bide bababa, dami bababa, dodo bababa, made bababa, mimi bababa, boma bababe, dide bababe, kami bababe, kobo bababe, mema bababe"
    # So few that they seldom meet: then an answer takes as long as its work.
    users = 12
    think = 1
    # A sort that only reads takes about 3 ms. A CPU a third as fast keeps to 10 ms; one
    # three times as fast does not if it clones.
    limits = Limits(call_s=0.003, quarter_within_ms=10)
