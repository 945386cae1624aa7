"""Chapter 10: a queue without an end.

    locust -f locust/chapter10.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter10.py --host http://127.0.0.1:8080 -u 650 -r 300 -t 30s --headless --think 1
    locust -f locust/chapter10.py -u 650 -r 300 -t 30s --headless --calm-after 10 --calm-share 0.3

The same script ends with exit code 99 on the problem and 0 on the solution.
"""

from common import ChapterUser, Limits


class Client(ChapterUser):
    users = 650
    think = 1
    path = "/quote"
    answer = '{"cents":4200}'
    # After so many seconds a user closes its connection.
    give_up = 0.25
    # Eight calls at a time, of 20 ms and the timer's rounding, make 350 quotes per second.
    limits = Limits(call_s=0.02, quarter_within_ms=250, capacity=350)
