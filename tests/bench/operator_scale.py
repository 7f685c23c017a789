"""Measure the operator: ``PYTHONPATH=tests python tests/bench/operator_scale.py``.

Many pools and workflows are there before it starts; it makes everything for them, and then nothing happens for a
while. Printed are CPU, memory and wall time of the operator's process and its writes as the audit log has them, for
each of the variants named; `plain` is the same plan behind kopf's ordinary handlers (`plain_kopf.py`, not shipped).
A real API server and real controllers; pods run in name only. It exits with 1 where the operator passes a limit that
it is built for, at the default size or a smaller one.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

from support.apiserver import ApiServer
from support.auditlog import AuditLog
from support.binaries import binaries
from support.controllers import ControlPlane
from support.definitions import define, served_at
from support.kubernetes import Api, Object
from support.operators import install
from support.resources import pool_data, workflow_data
from support.runfolder import RunFolder

PLAIN = Path(__file__).with_name("plain_kopf.py")
CHILDREN = (
    "/api/v1/configmaps",
    "/api/v1/services",
    "/api/v1/serviceaccounts",
    "/apis/apps/v1/deployments",
    "/apis/batch/v1/cronjobs",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
)
TUNING = {"mode": "Recommend", "schedule": "* * * * *"}
"""Each minute a tuner runs in name only, so that rest is not the rest of a cluster where nothing moves."""
PORT = 18982
MOST = {
    "CPU seconds from cold": 30.0,
    "MB at the peak": 300.0,
    "writes for each child": 1.2,
    "% of a core at rest": 1.0,
    "writes at rest": 0.0,
}
"""What the operator may take."""


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def fill(api: Api, *, pools: int, workflows: int, namespaces: int) -> None:
    """Create the namespaces and the resources in them."""
    for number in range(namespaces):
        api.create("/api/v1/namespaces", {"metadata": {"name": f"bench-{number}"}})
    for number in range(pools):
        namespace = f"bench-{number % namespaces}"
        resource = pool_data(f"pool-{number}", emulated=True, replicas=1)
        api.create(served_at("GPUPool", namespace=namespace), resource)
    for number in range(workflows):
        namespace = f"bench-{number % namespaces}"
        resource = workflow_data(f"workflow-{number}", tuning=TUNING)
        api.create(served_at("TextToSQLWorkflow", namespace=namespace), resource)


def clear(api: Api, *, namespaces: int) -> None:
    """Delete the namespaces and wait until they are gone."""
    for number in range(namespaces):
        path = f"/apis/hexflow.dev/v1alpha1/namespaces/bench-{number}"
        for plural in ("gpupools", "texttosqlworkflows"):
            for each in api.items(f"{path}/{plural}"):
                if each["metadata"].get("finalizers"):
                    name = each["metadata"]["name"]
                    api.patch(f"{path}/{plural}/{name}", {"metadata": {"finalizers": None}})
        api.delete(f"/api/v1/namespaces/bench-{number}")
    while any(api.exists(f"/api/v1/namespaces/bench-{number}") for number in range(namespaces)):
        time.sleep(1)


def children(api: Api) -> int:
    """Count what was made."""
    return sum(len(api.items(path, labelSelector="hexflow.dev/part")) for path in CHILDREN)


def ours(log: AuditLog) -> Counter[str]:
    """Count the operator's writes by resource, the Lease left out."""
    return Counter(
        f"{each.resource}{'/' + each.subresource if each.subresource else ''}"
        for each in log.writes(user="system:serviceaccount:hexflow-bench:hexflow-operator")
        if each.resource != "leases"
    )


def until_made(api: Api, wishes: argparse.Namespace) -> float:
    """Wait until every child is there and every resource has a status; return when that was seen."""
    wanted = 3 * wishes.pools + 3 * wishes.workflows + 5 * wishes.namespaces
    while True:
        if children(api) >= wanted and all(
            each.get("status", {}).get("conditions")
            for plural in ("gpupools", "texttosqlworkflows")
            for each in api.items(f"/apis/hexflow.dev/v1alpha1/{plural}")
        ):
            return time.monotonic()
        time.sleep(2)


def measure(server: ApiServer, variant: str, *, rest_seconds: float, wishes: argparse.Namespace) -> list[str]:
    """Run one variant from cold, then at rest, and print a row; return which limits it passed."""
    api = server.api
    fill(api, pools=wishes.pools, workflows=wishes.workflows, namespaces=wishes.namespaces)
    time.sleep(3)
    account = server.service_account("hexflow-operator", namespace="hexflow-bench")
    program = ["-m", "hexflow_operator"] if variant == "ours" else [str(PLAIN)]
    flags = [f"--kubeconfig={account}", "--lease-namespace=hexflow-bench", f"--port={PORT}", "--router-url="]
    log = server.audit_log().from_now_on()
    began = time.monotonic()
    server.folder.start(variant, [sys.executable, *program, *flags])
    process = psutil.Process(server.folder.pid(variant))
    done = until_made(api, wishes)
    time.sleep(5)  # what follows at once belongs to it
    cold = process.cpu_times()
    wall, made, writes = done - began, children(api), ours(log)
    status = sum(count for name, count in writes.items() if name.endswith("/status"))
    to_children = sum(
        count
        for name, count in writes.items()
        if "/" not in name and name not in ("events", "gpupools", "texttosqlworkflows")
    )
    to_resources = sum(count for name, count in writes.items() if name in ("gpupools", "texttosqlworkflows"))
    peak = int(
        next(
            line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in line
        ).split()[1]
    )
    say(
        f"{variant:6} cold: {cold.user + cold.system:6.1f} CPU s, {wall:6.1f} s wall, {peak / 1024:5.0f} MB peak; "
        f"{made} children, {to_children / max(made, 1):.3f} writes each; {status} status writes, {to_resources} writes to "
        f"the resources themselves, {writes['events']} events; {sum(writes.values()) / wall:.0f} writes/s; load {os.getloadavg()[0]:.1f}"
    )
    found = {
        "CPU seconds from cold": cold.user + cold.system,
        "MB at the peak": peak / 1024,
        "writes for each child": to_children / max(made, 1),
    }
    if rest_seconds:
        time.sleep(75)  # the first run of each tuner is told in a status, once
        log = server.audit_log().from_now_on()
        before = process.cpu_times()
        time.sleep(rest_seconds)
        after = process.cpu_times()
        share = (after.user + after.system - before.user - before.system) / rest_seconds
        say(
            f"{variant:6} rest: {100 * share:.2f} % of a core over {rest_seconds:.0f} s, {sum(ours(log).values())} writes but for the Lease {dict(ours(log)) or ''}"
        )
        found |= {"% of a core at rest": 100 * share, "writes at rest": float(sum(ours(log).values()))}
    server.folder.stop(variant, grace_seconds=15)
    clear(api, namespaces=wishes.namespaces)
    return [
        f"{value:.4g} {name}, at most {MOST[name]:g} allowed"
        for name, value in found.items()
        if value > MOST[name]
    ]


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=int, default=500)
    parser.add_argument("--workflows", type=int, default=200)
    parser.add_argument("--namespaces", type=int, default=20)
    parser.add_argument("--rest", type=float, default=60.0, help="seconds at rest (default: 60)")
    parser.add_argument("variants", nargs="*", default=["ours", "plain"])
    wishes = parser.parse_args()
    with RunFolder() as folder:
        server = ApiServer(binaries=binaries("b"), folder=folder)
        define(server.api)
        controllers = ControlPlane(server)
        try:
            for _ in range(10):
                controllers.kubelet.add_node(gpus=100, cpu="1000", memory="4Ti")
            prepare(server.api)
            missed = [
                f"{variant}: {line}"
                for variant in wishes.variants
                for line in measure(server, variant, rest_seconds=wishes.rest, wishes=wishes)
                if variant == "ours"
            ]
        finally:
            controllers.close()
            server.close()
    if missed:
        sys.exit("\n".join(["the operator's limits are passed:", *missed]))


def prepare(api: Api) -> None:
    """Install the operator's rights for the whole cluster."""
    api.create("/api/v1/namespaces", {"metadata": {"name": "hexflow-bench"}})
    install(api, "hexflow-bench")
    binding: Object = {
        "metadata": {"name": "hexflow-bench"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "hexflow-operator",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "hexflow-operator", "namespace": "hexflow-bench"}],
    }
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)


if __name__ == "__main__":
    main()
