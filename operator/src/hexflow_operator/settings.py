"""Settings of the operator's process: where the API server is, what it watches, and the images it starts.

A flag wins over its environment variable (``HEXFLOW_OPERATOR_PORT`` for ``--port``), which wins over the default.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from hexflow_operator.defaults import Defaults

DEFAULTS = Defaults()


class SettingsError(ValueError):
    """The operator was started with settings it cannot use; the text is one readable sentence for each."""


class Settings(BaseSettings):
    """Turn GPUPools and TextToSQLWorkflows into pods. Of several such processes one acts, the others wait."""

    model_config = SettingsConfigDict(
        env_prefix="HEXFLOW_OPERATOR_",
        frozen=True,
        extra="forbid",
        cli_prog_name="hexflow operator",
        cli_kebab_case=True,
        cli_hide_none_type=True,
        cli_avoid_json=True,
        nested_model_default_partial_update=False,
    )

    kubeconfig: Path | None = Field(
        default=None,
        description="Kubeconfig of the cluster; default: the pod's ServiceAccount, else $KUBECONFIG or ~/.kube/config.",
    )
    context: str | None = Field(
        default=None, description="Context of the kubeconfig; default: its current one."
    )
    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Namespaces to serve, separated by commas; default: all of the cluster."
    )
    lease_namespace: str | None = Field(
        default=None, description="Namespace of the Lease; default: the pod's own, else `default`."
    )
    lease_name: str = Field(default="hexflow-operator", description="Name of the Lease.")
    lease_seconds: Annotated[int, Field(ge=6, le=600)] = Field(
        default=30, description="Another operator takes over when the leader was not heard of for so long."
    )
    identity: str | None = Field(
        default=None, description="Name in the Lease; default: host name and a number."
    )
    host: str = Field(default="127.0.0.1", description="Address of the port for probes and metrics.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=8082, description="Port for probes and metrics. 0 = a free one."
    )
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default=8, description="Looks at a time.")
    writes_per_second: Annotated[float, Field(gt=0)] = Field(
        default=100.0, description="Writes to the API server on average; twice as many at once."
    )
    resync_seconds: Annotated[float, Field(gt=0)] = Field(
        default=600.0,
        description="Everything is compared with the API server so often, whatever the watches say.",
    )
    router_url: str = Field(
        default="http://hexflow-router.{namespace}.svc:8081",
        description="Admin port of a namespace's router; empty: routers are not asked (outside a cluster).",
    )
    report_seconds: Annotated[float, Field(ge=1)] = Field(
        default=60.0, description="Routers are asked about themselves so often."
    )
    engine_image: str = Field(default=DEFAULTS.engine_image, description="vLLM of pools that name no image.")
    router_image: str = Field(default=DEFAULTS.router_image, description="Image of the routers.")
    emulator_image: str = Field(
        default=DEFAULTS.emulator_image, description="Image of emulated instances and tuners."
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="Pull policy of what is started."
    )
    image_pull_secrets: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Secrets with the registry's credentials, in the namespaces of the pods."
    )
    router_cluster_role: str = Field(
        default=DEFAULTS.router_cluster_role, description="ClusterRole that routers are bound to."
    )
    tuner_cluster_role: str = Field(
        default=DEFAULTS.tuner_cluster_role, description="ClusterRole that tuners are bound to."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error."
    )

    @field_validator("namespaces", "image_pull_secrets", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        texts = [value] if isinstance(value, str) else value
        return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())

    @property
    def defaults(self) -> Defaults:
        """What a plan fills in where a resource says nothing."""
        ours = type(self).model_fields
        return Defaults(
            **{each.name: getattr(self, each.name) for each in fields(Defaults) if each.name in ours}
        )

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> "Settings":
        """Read settings from a command line (without the program's name) and the environment.

        Raises SettingsError. ``--help`` and flags that do not exist end the process, as argparse does.
        """
        try:
            return cls(_cli_parse_args=list(arguments))
        except ValidationError as error:
            raise SettingsError("\n".join(_sentence(dict(item)) for item in error.errors())) from None


def _sentence(item: dict[str, Any]) -> str:
    flag = "--" + str(item["loc"][0]).replace("_", "-")
    message = str(item["msg"]).removeprefix("Value error, ").replace("Input should", "must")
    return f"{flag} {item['input']!r}: {message}"
