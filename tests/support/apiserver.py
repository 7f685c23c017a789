"""A real Kubernetes API server over a real etcd, on free ports of the loopback: as any user, without Docker.

It signs its own certificate; users are static tokens. What it needs of the machine is `openssl`, for the key that
service account tokens are signed with.
"""

import contextlib
import json
import secrets
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from support.auditlog import AuditLog
from support.kubernetes import Api, ApiError, Kubectl, kubeconfig
from support.runfolder import RunFolder

READY_SECONDS = 90.0
"""A start takes three seconds on an idle machine; two busy cores have taken far longer."""

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "None",
            "userGroups": ["system:serviceaccounts:kube-system", "system:nodes", "hexflow:fixtures"],
        },
        {
            "level": "None",
            "users": [
                "system:apiserver",
                "system:anonymous",
                "system:kube-controller-manager",
                "system:kube-scheduler",
            ],
        },
        {"level": "Metadata"},
    ],
}
"""Every request is logged but the control plane's own, the fake kubelet's and those of the fixtures."""

USERS = {
    "admin": ("admin", "system:masters"),
    "fixtures": ("hexflow:fixtures", "system:masters,hexflow:fixtures"),
    "kubelet": ("hexflow:kubelet", "system:masters,system:nodes"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}
"""Our short name -> the API server's user and groups."""


class ApiServer:
    """A running API server and the etcd behind it."""

    def __init__(self, *, binaries: Path, folder: RunFolder, options: Sequence[str] = ()) -> None:
        """Start both; take the folder with the binaries, and further options of kube-apiserver."""
        self._options = options
        self.binaries = binaries
        self.folder = folder
        self.controllers = False
        """Whether somebody acts on what is written (`support.controllers`)."""
        self.audit_file = folder.path / "audit.log"
        self._ports = [_reserved_port() for _ in range(3)]
        etcd, peers, port = (held.getsockname()[1] for held in self._ports)
        self._etcd = f"http://127.0.0.1:{etcd}"
        self.url = f"https://127.0.0.1:{port}"
        self.certificates = folder.path / "certificates"
        self.ca = self.certificates / "apiserver.crt"
        self._tokens = {name: secrets.token_hex(16) for name in USERS}
        self._write_inputs()
        self._start_etcd(peers)
        self.start()
        self.api = self.api_as("fixtures")
        self.admin_kubeconfig = self.kubeconfig_as("admin")

    def start(self) -> None:
        """Start the API server, after `stop`, at its old address."""
        self._run("apiserver", url=self.url, audit_file=self.audit_file)

    def stop(self) -> None:
        """Kill the API server; etcd keeps what it knew. (Asked to end, it would wait a minute for its watchers.)"""
        self.folder.stop("apiserver", grace_seconds=0)

    def restart(self) -> None:
        """Stop and start: every connection breaks, every watch must begin anew."""
        self.stop()
        self.start()

    @contextlib.contextmanager
    def second(self) -> Iterator[Api]:
        """Run another API server on the same etcd, so that objects can change while the first is stopped."""
        with _reserved_port() as held:
            url = f"https://127.0.0.1:{held.getsockname()[1]}"
            self._run("apiserver2", url=url, audit_file=self.folder.path / "audit2.log")
            api = Api(url=url, ca=self.ca, token=self._tokens["fixtures"])
            try:
                yield api
            finally:
                api.close()
                self.folder.stop("apiserver2", grace_seconds=0)

    def close(self) -> None:
        """Stop both, the API server first."""
        self.api.close()
        if self.folder.running("apiserver"):
            self.stop()
        self.folder.stop("etcd", grace_seconds=5)
        for held in self._ports:
            held.close()

    def api_as(self, user: str, *, url: str | None = None) -> Api:
        """Return the API as seen by one of USERS, perhaps through a proxy. Close it."""
        return Api(url=url or self.url, ca=self.ca, token=self._tokens[user])

    def kubeconfig_as(
        self,
        user: str,
        *,
        url: str | None = None,
        namespace: str = "default",
        impersonate: str | None = None,
    ) -> Path:
        """Write a kubeconfig of one of USERS; `url` puts a proxy in front, `impersonate` acts as anybody."""
        return self._write_kubeconfig(
            user, self._tokens[user], url=url, namespace=namespace, impersonate=impersonate
        )

    def service_account(
        self, name: str, *, namespace: str, url: str | None = None, seconds: int = 7200
    ) -> Path:
        """Write a kubeconfig with a token of a ServiceAccount, which is made if it is not there."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if not self.api.exists(f"{accounts}/{name}"):
            self.api.create(accounts, {"metadata": {"name": name}})
        wish = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        token: str = self.api.create(f"{accounts}/{name}/token", wish)["status"]["token"]
        return self._write_kubeconfig(name, token, url=url, namespace=namespace, impersonate=None)

    def trust(self) -> ssl.SSLContext:
        """Return the trust in the API server's certificate."""
        return ssl.create_default_context(cafile=str(self.ca))

    def kubectl(self, kubeconfig: Path | None = None) -> Kubectl:
        """Return kubectl, by default as an administrator."""
        return Kubectl(
            binary=self.binaries / "kubectl",
            kubeconfig=kubeconfig or self.admin_kubeconfig,
            cache=self.folder.path / "kubectl-cache",
        )

    def audit_log(self) -> AuditLog:
        """Return all that was asked since the server first started."""
        return AuditLog(self.audit_file)

    def _write_kubeconfig(
        self, who: str, token: str, *, url: str | None, namespace: str, impersonate: str | None
    ) -> Path:
        text = kubeconfig(
            url=url or self.url, ca=self.ca, token=token, namespace=namespace, impersonate=impersonate
        )
        path = self.folder.path / "kubeconfigs" / f"{namespace}-{who}-{secrets.token_hex(3)}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        return path

    def _write_inputs(self) -> None:
        path = self.folder.path
        subprocess.run(
            ["openssl", "genrsa", "-out", path / "accounts.key", "2048"], check=True, capture_output=True
        )
        lines = [f'{self._tokens[name]},{user},{name},"{groups}"' for name, (user, groups) in USERS.items()]
        (path / "tokens.csv").write_text("\n".join(lines) + "\n")
        (path / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))

    def _start_etcd(self, peers: int) -> None:
        command: Sequence[str | Path] = (
            self.binaries / "etcd",
            f"--data-dir={self.folder.path / 'etcd'}",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            "--socket-reuse-port",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self.folder.start("etcd", command)

    def _run(self, name: str, *, url: str, audit_file: Path) -> None:
        path = self.folder.path
        command: Sequence[str | Path] = (
            self.binaries / "kube-apiserver",
            f"--etcd-servers={self._etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={url.rpartition(':')[2]}",
            "--permit-port-sharing",
            f"--cert-dir={self.certificates}",
            "--endpoint-reconciler-type=none",  # a loopback address cannot be the endpoint of a Service
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={path / 'accounts.key'}",
            f"--service-account-signing-key-file={path / 'accounts.key'}",
            f"--token-auth-file={path / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--audit-policy-file={path / 'audit-policy.json'}",
            f"--audit-log-path={audit_file}",
            "--audit-log-maxsize=4000",  # megabytes: never rotated
            "--v=1",
            *self._options,
        )
        self.folder.start(name, command)
        self._await_ready(name, url)

    def _await_ready(self, name: str, url: str) -> None:
        end = time.monotonic() + READY_SECONDS
        while True:
            for process in ("etcd", name):
                assert self.folder.running(process), (
                    f"{process} ended before it was ready:\n{self.folder.tail(process)}"
                )
            with contextlib.suppress(OSError, httpx.TransportError, ApiError):
                api = Api(url=url, ca=self.ca, token=self._tokens["fixtures"])
                try:
                    api.get("/readyz")
                    return
                finally:
                    api.close()
            assert time.monotonic() < end, (
                f"{name} was not ready within {READY_SECONDS:g} s:\n{self.folder.tail(name)}"
            )
            time.sleep(0.1)


def _reserved_port() -> socket.socket:
    """Hold a free port: who binds it with SO_REUSEPORT may listen there, and nobody else gets it meanwhile."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    return held
