"""A folder served on 127.0.0.1, on a port that the system picks."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Iterator


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line of log a request."""

    # Connections that last: a page and what it needs are two dozen files.
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    # A browser that leaves a page hangs up in the middle of an answer.
    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yields the address, such as `http://127.0.0.1:34567`, while `folder` is served there."""
    server = _Server(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
