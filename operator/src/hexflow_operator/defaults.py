"""What the operator fills in where a resource says nothing: images, names of ClusterRoles, times."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Hold what the operator was started with and `plan` needs. A change to one of the images rolls the pods."""

    engine_image: str = "vllm/vllm-openai:v0.32.0"
    """The vLLM of pools that name no image."""
    router_image: str = "ghcr.io/hexflow-dev/hexflow-router:0.1.0"
    emulator_image: str = "ghcr.io/hexflow-dev/hexflow-emulator:0.1.0"
    """Emulated instances and the tuner."""
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    """Names of Secrets with the registry's credentials, in the namespace of the pods."""
    router_cluster_role: str = "hexflow-router"
    tuner_cluster_role: str = "hexflow-tuner"
    """The ClusterRoles that the chart ships; the operator may bind these two and make none."""
