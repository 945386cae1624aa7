"""Chapter 5: CPU work on the reactor thread.

    locust -f locust/chapter5.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter5.py --host http://127.0.0.1:8080 -u 64 -r 100 -t 30s --headless --think 0

The same script ends with exit code 99 on the problem and 0 on the solution. Users of /data cannot
tell the two apart. What does is the ping, which is sent on a schedule beside them.
"""

from common import ChapterUser, Limits, Bystander


class Worker(ChapterUser):
    path = "/data"
    answer = "4"
    users = 64
    think = 0
    # 64 users whose answers take 4 ms each of one CPU get theirs every 256 ms. Twice that leaves
    # room for a CPU that others use, too: what is told apart here are the pings.
    limits = Limits(call_s=0.512)
    # Who asks for nothing that takes work must not wait for the others: a quarter of their 256 ms.
    bystander = Bystander(path="/ping", answer="pong", per_second=100, quarter_within_ms=64)
