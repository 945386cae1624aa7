"""Chapter 6: CPUs that the runtime does not see.

    locust -f locust/chapter6.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter6.py --host http://127.0.0.1:8080 -u 6 -r 100 -t 30s --headless --think 0

The same script ends with exit code 99 on the problem and 0 on the solution. How long a scan takes
depends on the machine, so it is found out first, by asking with no other users.
"""

from common import ChapterUser


class Writer(ChapterUser):
    path = "/check"
    # Longer than a text of the data set, so that each of them is looked at, and none matches.
    body = "None of the forbidden texts begins as this letter does. " * 12
    answer = "false"
    users_per_cpu = 3
    think = 0
    # Where every CPU serves its three users, an answer takes three scans, which take up to half
    # as long again where CPUs share a memory and a core: 4.5. Where one CPU of two serves
    # all six users, it takes six. Between the two lies the root of 4.5 * 6.
    times_alone = 5.2
