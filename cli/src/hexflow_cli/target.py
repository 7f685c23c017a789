"""Which router, workflow and tenant a question goes to, when the command line does not say everything.

The order is `--url`, `HEXFLOW_URL`, the state file that `hexflow up` writes, port 8080 on the loopback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.statefile import StateFile, WorkflowEntry

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Say where a question goes and who asks."""

    url: str
    workflows: tuple[str, ...] | None
    """The workflows that are served there; None where only the router can say."""
    api_key: str | None


def router_url(given: str | None, state: StateFile | None) -> str:
    """Return the router's URL by the order that this module states. `given` is the option or its variable."""
    url = given or (state.url if state else DEFAULT_URL)
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(
            f"{url!r} is no URL of a router. Write it like {DEFAULT_URL}.",
            code=ExitCode.USAGE,
            reason="InvalidUrl",
        )
    return parts.geturl().rstrip("/")


def choose_workflow(given: str | None, known: Sequence[str]) -> str:
    """Return the workflow asked for, or the only one there is."""
    if given:
        return given
    if len(known) == 1:
        return known[0]
    if not known:
        raise CommandError(
            "Say which workflow shall answer with --workflow NAME.",
            code=ExitCode.USAGE,
            reason="WorkflowMissing",
        )
    raise CommandError(
        f"Several workflows are there: {', '.join(sorted(known))}. Say which one with --workflow NAME.",
        code=ExitCode.USAGE,
        reason="WorkflowAmbiguous",
    )


def choose_api_key(given: str | None, tenant: str | None, workflow: WorkflowEntry | None) -> str | None:
    """Return the key given, else that of the tenant named, else that of the workflow's first tenant."""
    if given:
        return given
    tenants = workflow.tenants if workflow else ()
    if tenant is None:
        chosen = next(iter(tenants), None)
    else:
        chosen = next((entry for entry in tenants if entry.name == tenant), None)
        if chosen is None:
            known = ", ".join(entry.name for entry in tenants)
            remedy = f"There are: {known}." if known else "Give its key with --api-key instead."
            raise CommandError(
                f"No tenant {tenant!r} is known here. {remedy}", code=ExitCode.USAGE, reason="UnknownTenant"
            )
    if chosen is None or chosen.api_key_file is None:
        return None
    try:
        return chosen.api_key_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CommandError(
            f"The API key of tenant {chosen.name} cannot be read from {chosen.api_key_file} ({error.strerror}). "
            "Give it with --api-key.",
            code=ExitCode.USAGE,
            reason="ApiKeyMissing",
        ) from error


def find_target(
    *, url: str | None, workflow: str | None, tenant: str | None, api_key: str | None, state: StateFile | None
) -> Target:
    """Put together what the command line, the environment and the state file say."""
    found = router_url(url, state)
    here = state is not None and found == state.url.rstrip("/")
    entries = {entry.name: entry for entry in state.workflows} if state and here else {}
    if workflow and entries and workflow not in entries:
        raise CommandError(
            f"There is no workflow {workflow!r}. There is: {', '.join(sorted(entries))}.",
            code=ExitCode.USAGE,
            reason="UnknownWorkflow",
        )
    entry = entries.get(workflow) if workflow else next(iter(entries.values())) if len(entries) == 1 else None
    return Target(
        url=found, workflows=tuple(entries) if here else None, api_key=choose_api_key(api_key, tenant, entry)
    )
