"""A tiny web application for the checks: `/healthz`, `/whoami`, and `/call?url=…`, which asks another Service."""

import http.server
import json
import os
import socket
import urllib.parse
import urllib.request
from typing import Any


class App(http.server.BaseHTTPRequestHandler):
    """Answer in JSON."""

    def do_GET(self) -> None:
        """Answer one request."""
        url = urllib.parse.urlparse(self.path)
        status, body = 200, {"host": socket.gethostname(), "name": os.environ.get("NAME", "demo")}
        answer: dict[str, Any] = dict(body)
        if url.path == "/call":
            try:
                target = urllib.parse.parse_qs(url.query)["url"][0]
                with urllib.request.urlopen(target, timeout=3) as reply:
                    answer["answer"] = json.load(reply)
            except (OSError, KeyError, ValueError) as error:
                status, answer["error"] = 502, str(error)
        elif url.path not in ("/healthz", "/whoami"):
            status = 404
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", 8000), App).serve_forever()
