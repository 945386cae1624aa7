"""Written by `duel load`. Ends with exit code 1 if an answer is wrong.

    locust -f THIS_FILE --host https://localhost:8443 -u 50 -r 50 -t 0.3s --headless
"""

import os
import random

from gevent.ssl import create_default_context
from locust import FastHttpUser, constant, task

# The authority that signed the service's certificate. Workers of other machines need a copy.
CACERT = os.environ.get("CACERT", "certificates/ca.pem")


class Reader(FastHttpUser):
    host = "https://localhost:8443"
    wait_time = constant(0)
    # Locust verifies nothing unless it is told to.
    insecure = False
    ssl_context_factory = staticmethod(lambda: create_default_context(cafile=CACERT))

    def on_start(self):
        # The client keeps the cookies that the answer sets.
        answer = self.client.request(
            "GET",
            "/login",
            data=None,
            headers={},
            allow_redirects=False,
        )
        self.login = {}

    @task(1)
    def request_1(self):
        path = "/health" + "" + ""
        with self.client.request(
            "GET",
            path,
            data=None,
            headers={**self.login, },
            name="GET /health",
            allow_redirects=False,
            catch_response=True,
        ) as answer:
            if answer.status_code in [200]:
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}" if answer.status_code else f"connection: {type(answer.error).__name__}")

    @task(3)
    def request_2(self):
        path = "/row/" + str(random.randint(5, 104)) + "?all"
        with self.client.request(
            "GET",
            path,
            data=None,
            headers={**self.login, },
            name="GET /row/{5..104}?all",
            allow_redirects=False,
            catch_response=True,
        ) as answer:
            if answer.status_code in [200]:
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}" if answer.status_code else f"connection: {type(answer.error).__name__}")

    @task(1)
    def request_3(self):
        path = "/name/" + random.choice(["a<b", "c\"d"]) + ""
        with self.client.request(
            "POST",
            path,
            data="{\"name\": \"me\"}\n",
            headers={**self.login, "accept": "a \"quoted\" one"},
            name="POST /name/{names}",
            allow_redirects=False,
            catch_response=True,
        ) as answer:
            if answer.status_code in [201, 503]:
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}" if answer.status_code else f"connection: {type(answer.error).__name__}")
