"""Settings of the router's process: what is not a resource.

Pools, workflows, databases and tenants are resources (`configuration.py`); where to find those, which
ports to listen on and how long to wait are settings. A flag wins over its environment variable
(``HEXFLOW_ROUTER_PORT`` for ``--port``; for ``--namespace`` also ``HEXFLOW_NAMESPACE``, which pods have), which wins
over the default.
"""

import argparse
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

POD_NAMESPACE = "HEXFLOW_NAMESPACE"
"""Variable that tells a pod its namespace."""


class SettingsError(ValueError):
    """The router was started with settings it cannot use; the text is one readable sentence for each."""


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("write a finite number")
    return value


Seconds = Annotated[float, AfterValidator(_finite), Field(gt=0)]
Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """Hold what a router process is started with. Durations are emulated seconds where a time scale is set."""

    model_config = SettingsConfigDict(
        env_prefix="HEXFLOW_ROUTER_",
        frozen=True,
        extra="forbid",
    )

    config: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(),
        description="File or folder of resources (GPUPool, TextToSQLWorkflow); repeat it for more. Watched.",
    )
    secrets_dir: Path | None = Field(
        default=None, description="Folder with one file for each secret's key: <name>/<key>."
    )
    config_map: str | None = Field(
        default=None,
        description="In a cluster: ConfigMap with the resources, which the operator writes; instances are then pods.",
    )
    namespace: str | None = Field(
        default=None, description="In a cluster: namespace of the ConfigMap and of the pods."
    )
    kubeconfig: Path | None = Field(
        default=None, description="Kubeconfig to reach the cluster by; default: the pod's ServiceAccount."
    )
    instances: Path | None = Field(
        default=None, description="JSON file of the instances that somebody else started. Watched."
    )
    host: str = Field(default="127.0.0.1", description="Address of the tenants' port.")
    port: Port = Field(default=8080, description="Tenants' port: questions, OpenAI calls, health. 0 = free.")
    admin_host: str = Field(default="127.0.0.1", description="Address of the admin port.")
    admin_port: Port = Field(default=8081, description="Admin port: metrics, scheduler, event log. 0 = free.")
    time_scale: Annotated[float, AfterValidator(_finite), Field(gt=0, le=1000)] = Field(
        default=1.0, description="Run the clock this many times faster than real (emulated engines only)."
    )
    event_log: Path | None = Field(
        default=None, description="File that the event log (the kernel's inputs and decisions) is added to."
    )
    journal: Path | None = Field(
        default=None, description="SQLite file that remembers async queries; without it memory does."
    )
    estimates: Path | None = Field(
        default=None,
        description="File that keeps what the scheduler learns for the next start; default: one beside the journal, if there is a journal.",
    )
    grace_seconds: Seconds = Field(
        default=30.0, description="Real seconds that running work gets to finish after SIGTERM."
    )
    connect_seconds: Seconds = Field(
        default=5.0, description="Real seconds to connect to an engine; past them it counts as down."
    )
    first_byte_seconds: Seconds = Field(
        default=120.0,
        description="From sending a call to the first event of its stream (for calls of the router's own: to the answer).",
    )
    idle_seconds: Seconds = Field(default=60.0, description="Longest silence in the middle of an answer.")
    call_seconds: Seconds = Field(
        default=900.0, description="A call ends for good after this, waiting and every try included."
    )
    hard_cap_factor: Annotated[float, AfterValidator(_finite), Field(ge=1, le=1000)] = Field(
        default=10.0,
        description="A query under onDeadline: Finish ends for good at this many times its deadline.",
    )
    max_body_bytes: Annotated[int, Field(ge=1024)] = Field(
        default=4 * 1024 * 1024, description="Largest request body taken."
    )
    max_question_chars: Annotated[int, Field(ge=1)] = Field(
        default=20_000, description="Longest question, and longest evidence, taken."
    )
    max_running_queries: Annotated[int, Field(ge=1)] = Field(
        default=1_000, description="Queries running at once; more are answered 429."
    )
    max_rows: Annotated[int, Field(ge=1)] = Field(default=1_000, description="Most rows in an answer.")
    kept_queries: Annotated[int, Field(ge=0)] = Field(
        default=1_000, description="Finished queries that stay readable."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error."
    )

    @property
    def estimates_file(self) -> Path | None:
        """The file that keeps what the scheduler learns; None for none."""
        if self.estimates is not None or self.journal is None:
            return self.estimates
        return self.journal.with_name(f"{self.journal.stem}.estimates.json")

    @field_validator("config", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part for part in value.split(os.pathsep) if part) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.config_map is None:
            return self
        if self.config or self.instances:
            raise ValueError("--config-map takes the place of --config and --instances: leave those out")
        if self.namespace is None:
            raise ValueError(f"--config-map needs --namespace (or the variable {POD_NAMESPACE})")
        if self.secrets_dir is None:
            raise ValueError("--config-map needs --secrets-dir, where the secrets are mounted")
        return self

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> "Settings":
        """Read settings from a command line (without the program's name) and the environment.

        Raises SettingsError. ``--help`` and flags that do not exist end the process, as argparse does.
        """
        given = vars(_parser().parse_args(arguments))
        if "HEXFLOW_ROUTER_NAMESPACE" not in os.environ and (namespace := os.environ.get(POD_NAMESPACE)):
            given = {"namespace": namespace} | given
        try:
            return cls(**given)
        except ValidationError as error:
            raise SettingsError("\n".join(_sentence(dict(item)) for item in error.errors())) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hexflow router",
        description="Answer questions and pass OpenAI calls on to the instances that suit them best.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, ()) else f" (default {field.default})"
        parser.add_argument(
            "--" + name.replace("_", "-"),
            action="append" if name == "config" else "store",
            metavar=name.split("_")[-1].upper(),
            help=f"{field.description}{default}",
        )
    return parser


def _sentence(item: dict[str, Any]) -> str:
    if not item["loc"]:
        return str(item["msg"]).removeprefix("Value error, ")
    flag = "--" + str(item["loc"][0]).replace("_", "-")
    return f"{flag} {item['input']!r}: {str(item['msg']).removeprefix('Value error, ').replace('Input should', 'must')}"
