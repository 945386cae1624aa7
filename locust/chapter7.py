"""Chapter 7: NUMA locality.

    locust -f locust/chapter7.py --host http://127.0.0.1:8080                  (web page)
    locust -f locust/chapter7.py --host http://127.0.0.1:8080 -u 6 -r 100 -t 30s --headless --think 0

On a machine with one NUMA node problem and solution are equally fast, and the script ends with
exit code 0 on both. How long a scan takes depends on the machine, so it is found out first, by asking
with no other users.
"""

from common import ChapterUser


class Writer(ChapterUser):
    path = "/check"
    # Longer than a text of the data set, so that each of them is looked at, and none matches.
    body = "None of the forbidden texts begins as this letter does. " * 12
    answer = "false"
    users_per_cpu = 3
    think = 0
    # Every CPU serves its three users, so an answer takes three scans. Memory that all of them
    # wait for makes them longer than a scan alone, by half or so; a CPU that serves twice as many
    # users would make it six. The same limit as in chapter 6, whose service this is.
    times_alone = 5.2
