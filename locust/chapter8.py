"""Chapter 8: blocking strategies, and where a large body lives.

    locust -f locust/chapter8.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter8.py --host http://127.0.0.1:8080 -u 64 -r 100 -t 30s --headless --think 0

The same script ends with exit code 99 on the problem and 0 on the solution. Users of /summarize
cannot tell the two apart. What does is the ping, which is sent on a schedule beside them.
"""

from common import ChapterUser, Limits, Bystander


class Reader(ChapterUser):
    path = "/summarize"
    answer = "255 is the highest of 1048576 bytes"
    users = 64
    think = 0
    # The archive keeps 128 bodies a second: 64 users get theirs every 0.5 s, and on a slow machine later.
    limits = Limits(call_s=2)
    # A ping takes 50 ms, and must not wait for the bodies of others.
    bystander = Bystander(path="/ping", answer="pong", per_second=100, quarter_within_ms=80)
