"""Chapter 4: a client per request.

    locust -f locust/chapter4.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter4.py --host http://127.0.0.1:8080 -u 200 -r 100 -t 30s --headless --think 0.1

The same script ends with exit code 99 on the problem and 0 on the solution. The problem can be
outrun by CPUs: on a machine with more than three, give it more users.
"""

from common import ChapterUser, Limits


class Asker(ChapterUser):
    # They ask for more than 1,600 a second: more than two CPUs can set up clients for, and
    # little work for one that shares its client.
    users = 200
    think = 0.1
    path = "/io"
    answer = '{"status":200,"msg":"Good Luck!"}'
    # The upstream of this load answers after 20 ms; without --upstream-latency-ms it answers at once.
    limits = Limits(call_s=0.02)
