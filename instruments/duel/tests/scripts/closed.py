"""Written by `duel load`. Ends with exit code 1 if an answer is wrong.

    locust -f THIS_FILE --host http://127.0.0.1:8080 -u 50 -r 50 -t 10s --headless
"""

import random

from locust import FastHttpUser, constant, task


class Reader(FastHttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant(0.5)

    def on_start(self):
        # The client keeps the cookies that the answer sets.
        answer = self.client.request(
            "POST",
            "/login",
            data="{\"name\": \"me\"}",
            headers={"accept": "*/*"},
            allow_redirects=False,
        )
        self.login = {}
        token = answer.json()
        for key in ["data", "token"]:
            token = token[int(key) if isinstance(token, list) else key]
        self.login["authorization"] = f"Bearer {token}"

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
