"""Written by `duel load`. Ends with exit code 1 if an answer is wrong.

    locust -f THIS_FILE --host https://localhost:8443 -u 50 -r 50 -t 10s --headless
"""

import random

from locust import FastHttpUser, constant, task


class Reader(FastHttpUser):
    host = "https://localhost:8443"
    wait_time = constant(0.5)

    @task(1)
    def request_1(self):
        path = "/health" + "" + ""
        with self.client.request(
            "GET",
            path,
            data=None,
            headers={},
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
            headers={},
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
            headers={"accept": "a \"quoted\" one"},
            name="POST /name/{names}",
            allow_redirects=False,
            catch_response=True,
        ) as answer:
            if answer.status_code in [201, 503]:
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}" if answer.status_code else f"connection: {type(answer.error).__name__}")
