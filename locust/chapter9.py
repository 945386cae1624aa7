"""Chapter 9: a pool connection held across an await.

    locust -f locust/chapter9.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter9.py --host http://127.0.0.1:8080 -u 200 -r 100 -t 30s --headless --think 0.5

The same script ends with exit code 99 on the problem and 0 on the solution.
"""

from common import ChapterUser, Limits


class Customer(ChapterUser):
    users = 200
    think = 0.5
    path = "/order"
    body = '{"product":1,"quantity":2}'
    answer = '{"product":1,"quantity":2,"cents":2194}'
    # The pricing service that no order can do without takes 50 ms.
    limits = Limits(call_s=0.05)
