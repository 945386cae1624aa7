"""Chapter 1: a mutex held across an await.

    locust -f locust/chapter1.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter1.py --host http://127.0.0.1:8080 -u 200 -r 100 -t 30s --headless --think 0.5

The same script ends with exit code 99 on the problem and 0 on the solution.
"""

from common import ChapterUser, Limits


class Reader(ChapterUser):
    users = 200
    think = 0.5
    path = "/read"
    answer = "6"
    # The database call that no answer can do without takes 50 ms.
    limits = Limits(call_s=0.05)
