"""The Kubernetes API as a test uses it, with nothing under test in between: JSON requests, kubectl, kubeconfigs."""

import contextlib
import json
import os
import socket
import ssl
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import httpx

Object = dict[str, Any]
"""A Kubernetes object as the API reads and writes it."""

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiError(Exception):
    """The API server refused: its HTTP status, its one-word reason and its message."""

    def __init__(self, response: httpx.Response) -> None:
        try:
            said = response.json()
        except ValueError:
            said = {}
        self.status: int = response.status_code
        self.reason: str = said.get("reason", "")
        self.message: str = said.get("message", response.text)
        super().__init__(f"{self.status} {self.reason}: {self.message}")


class Api:
    """Make requests by path, as one user. May be used by several threads."""

    def __init__(self, *, url: str, ca: Path, token: str) -> None:
        self._client = httpx.Client(
            base_url=url,
            verify=ssl.create_default_context(cafile=str(ca)),
            headers={"authorization": f"Bearer {token}"},
            timeout=30,
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, **query: str) -> Object:
        """Read an object or a list."""
        return self._send("GET", path, query)

    def items(self, path: str, **query: str) -> list[Object]:
        """Read the objects of a list."""
        items: list[Object] = self.get(path, **query)["items"]
        return items

    def exists(self, path: str) -> bool:
        """Tell whether there is an object at this path."""
        try:
            self.get(path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def create(self, path: str, body: Object, **query: str) -> Object:
        """Post an object to the path of its kind."""
        return self._send("POST", path, query, body)

    def replace(self, path: str, body: Object, **query: str) -> Object:
        """Put an object in the place of another."""
        return self._send("PUT", path, query, body)

    def patch(self, path: str, body: Any, *, kind: str = "merge", **query: str) -> Object:
        """Change an object by a patch of one of the kinds in PATCHES."""
        return self._send("PATCH", path, query, body, PATCHES[kind])

    def delete(self, path: str, **query: str) -> Object:
        """Delete an object or a collection."""
        return self._send("DELETE", path, query)

    def watch(self, path: str, **query: str) -> "Watch":
        """Begin to watch the objects of a path; `with` it, and iterate."""
        return Watch(self._client, path, {**query, "watch": "1", "timeoutSeconds": "3600"})

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any = None,
        kind: str = "application/json",
    ) -> Object:
        content = None if body is None else json.dumps(body)
        response = self._client.request(
            method, path, params=dict(query), content=content, headers={"content-type": kind}
        )
        if response.is_error:
            raise ApiError(response)
        answer: Object = (
            response.json() if response.headers["content-type"].startswith("application/json") else {}
        )
        return answer


class Watch:
    """Yield (ADDED | MODIFIED | DELETED | ERROR, object) until the server ends it, or another thread does."""

    def __init__(self, client: httpx.Client, path: str, query: Mapping[str, str]) -> None:
        request = client.build_request("GET", path, params=dict(query), timeout=httpx.Timeout(30, read=None))
        self._response = client.send(request, stream=True)
        if self._response.is_error:
            self._response.read()
            raise ApiError(self._response)

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        for line in self._response.iter_lines():
            event = json.loads(line)
            yield event["type"], event["object"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self._response.close()

    def interrupt(self) -> None:
        """Break the connection under whoever iterates, who gets an httpx.TransportError."""
        connection: socket.socket = self._response.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class KubectlError(Exception):
    """Kubectl ended with an error; the text is what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """Call kubectl: `kubectl("get", "pods")` returns what it prints."""

    binary: Path
    kubeconfig: Path
    cache: Path

    def __call__(self, *arguments: str, stdin: str | Object | Iterable[Object] = "") -> str:
        """Run it; objects given as `stdin` are for `-f -`. Fail if it does."""
        result = self.run(*arguments, stdin=stdin)
        if result.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def run(
        self, *arguments: str, stdin: str | Object | Iterable[Object] = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run it and return all that came of it, failed or not."""
        return subprocess.run(
            [str(self.binary), f"--cache-dir={self.cache}", *arguments],
            input=stdin if isinstance(stdin, str) else manifests(stdin),
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "KUBERC": "off"},
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    def apply(self, *objects: Object, options: Iterable[str] = ()) -> str:
        """Apply objects."""
        return self("apply", *options, "-f", "-", stdin=objects)

    def json(self, *arguments: str) -> Object:
        """Run it with `-o json` and return what it prints."""
        answer: Object = json.loads(self(*arguments, "-o", "json"))
        return answer

    def with_kubeconfig(self, kubeconfig: Path) -> "Kubectl":
        """Return the same as somebody else."""
        return replace(self, kubeconfig=kubeconfig)


def manifests(objects: Object | Iterable[Object]) -> str:
    """Write objects as kubectl reads them: JSON documents, as a stream where there are several."""
    return "\n---\n".join(map(json.dumps, [objects] if isinstance(objects, dict) else objects))


def kubeconfig(
    *, url: str, ca: Path, token: str, namespace: str = "default", impersonate: str | None = None
) -> str:
    """Return a kubeconfig with one context; `impersonate` names the user to act as."""
    user = {"token": token, **({} if impersonate is None else {"as": impersonate})}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(ca)}}],
            "users": [{"name": "test", "user": user}],
            "contexts": [
                {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
            ],
            "current-context": "test",
        }
    )
