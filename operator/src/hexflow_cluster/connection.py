"""The way to the API server: credentials, TLS, one request at a time. The only module that imports the client.

The client is Kubernetes' own, its asyncio half. Tokens and kubeconfigs are read again as they rotate: the token of a
pod every minute, everything once more after a 401.
"""

import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes.aio import client, config
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.dynamic import DynamicClient

from hexflow_cluster.errors import ClusterError, Unauthorized, Unavailable, error_of

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts the token of a pod."""
APPLY: Final = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Say where the API server is found and as whom: a kubeconfig, or the pod's own ServiceAccount."""

    kubeconfig: Path | None = None
    """None: the ServiceAccount."""
    context: str | None = None
    """None: the kubeconfig's current one."""
    service_account: Path = SERVICE_ACCOUNT
    user_agent: str = "hexflow"
    connect_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Say what is asked of the API server."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: Any = field(default=None, repr=False)
    content_type: str | None = None
    accept: str = "application/json"
    seconds: float = 30.0
    """From connecting to the end of the answer."""

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


Query = Mapping[str, str | int | bool | None]
"""Parameters of a request; None leaves one out."""


def pairs(query: Query) -> list[tuple[str, str]]:
    """Return a query's parameters as the API server reads them."""
    return [
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in query.items()
        if value is not None
    ]


class Connection:
    """Hold the credentials and the open connections to one API server."""

    def __init__(self, access: Access, configuration: Any) -> None:
        self._access = access
        self._configuration = configuration
        self._client = client.ApiClient(configuration)
        self._client.user_agent = access.user_agent
        self._dynamic = DynamicClient(self._client)

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self._configuration.host)

    async def request(self, asked: Request) -> Any:
        """Return the decoded answer. Raises ClusterError; asks anew for credentials once after a 401."""
        try:
            return await self._decoded(asked)
        except Unauthorized:
            await self.reload()
            return await self._decoded(asked)

    @asynccontextmanager
    async def lines(
        self, path: str, *, query: Sequence[tuple[str, str]], silence_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of lines; it ends when the server ends it. Raises Unavailable when it breaks or falls silent."""
        asked = Request(method="get", path=path, query=query)
        patience = aiohttp.ClientTimeout(
            total=None, sock_connect=self._access.connect_seconds, sock_read=silence_seconds
        )
        try:
            response = await self._send(asked, patience)
        except Unauthorized:
            await self.reload()
            response = await self._send(asked, patience)
        try:
            yield _lines(response)
        finally:
            response.close()

    async def reload(self) -> None:
        """Read the credentials again; the connections that are open stay."""
        await _load(self._access, self._configuration)

    def session(self) -> aiohttp.ClientSession:
        """Return a new session with these credentials, for a library that brings its own requests; it owns it."""

        async def authorize(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            token = await self._configuration.get_api_key_with_prefix("BearerToken")
            if token:
                request.headers["Authorization"] = token
            response = await handler(request)
            if response.status != 401:
                return response
            response.release()
            await self.reload()
            if token := await self._configuration.get_api_key_with_prefix("BearerToken"):
                request.headers["Authorization"] = token
            return await handler(request)

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._client.rest_client.ssl_context),
            headers={"User-Agent": self._access.user_agent},
            middlewares=(authorize,),
            proxy=self._configuration.proxy,
            trust_env=_proxied(),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _decoded(self, asked: Request) -> Any:
        patience = aiohttp.ClientTimeout(total=asked.seconds, sock_connect=self._access.connect_seconds)
        response = await self._send(asked, patience)
        try:
            return json.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"the answer to {asked} broke off: {_words(error)}") from error
        except ValueError as error:
            raise Unavailable(f"the answer to {asked} is no JSON") from error

    async def _send(self, asked: Request, patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        try:
            response: aiohttp.ClientResponse = await self._dynamic.request(
                asked.method,
                asked.path,
                body=asked.body,
                query_params=list(asked.query),
                header_params={"Accept": asked.accept},
                content_type=asked.content_type,
                serialize=False,
                _request_timeout=patience,
            )
        except ApiException as error:
            raise error_of(error.status, error.body, error.headers) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"{asked} got no answer: {_words(error)}") from error
        return response


async def connect(access: Access) -> Connection:
    """Return a connection; nothing is sent yet. Raises ClusterError where the credentials cannot be read."""
    configuration = client.Configuration(client_session_kwargs={"trust_env": _proxied()})
    await _load(access, configuration)
    try:
        return Connection(access, configuration)
    except (OSError, ssl.SSLError) as error:
        raise ClusterError(f"the certificates of the API server cannot be read: {error}") from error


def _proxied() -> bool:
    """Tell whether the environment names a proxy; to look there costs two turns of a thread for each request."""
    return bool(urllib.request.getproxies_environment())


async def _load(access: Access, configuration: Any) -> None:
    try:
        if access.kubeconfig is not None:
            await config.load_kube_config(
                config_file=str(access.kubeconfig),
                context=access.context,
                client_configuration=configuration,
                persist_config=False,
            )
        else:
            InClusterConfigLoader(
                token_filename=access.service_account / "token",
                cert_filename=access.service_account / "ca.crt",
            ).load_and_set(configuration)
    except (config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        where = access.kubeconfig or access.service_account
        raise ClusterError(f"the way to the API server cannot be read from {where}: {error}") from error


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        while line := await response.content.readline():
            yield line
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise Unavailable(f"the watch broke off: {_words(error)}") from error


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
