"""Chapter 2: an RwLock whose guard lives too long.

    locust -f locust/chapter2.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter2.py --host http://127.0.0.1:8080 -u 400 -r 100 -t 30s --headless --think 0.5 --write-share 0.05

The same script ends with exit code 99 on the problem and 0 on the solution. With
--write-share 0 it passes on both: that is the lesson.
"""

from common import ChapterUser, Exchange, Limits


class Subscriber(ChapterUser):
    users = 400
    think = 0.5
    path = "/read"
    answer = "6"
    write = Exchange(path="/subscribe", body="87-89-34 snakes", answer="subscribed")
    write_share = 0.05
    # The database call that no read can do without takes 50 ms.
    limits = Limits(call_s=0.05)
