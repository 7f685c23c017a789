"""GPUPool: the same model on the same kind of GPU, a number of times."""

from typing import Annotated, Literal

from pydantic import Field, Strict, StringConstraints, field_validator

from hexflow_api.meta import (
    ABSOLUTE_PATH,
    WEIGHTS_URL,
    ConfigMapKeyRef,
    Flag,
    LabelSelector,
    LabelValue,
    ModelName,
    Native,
    ObjectName,
    Placement,
    Quantity,
    Resource,
    ResourceModel,
    SecretKeyRef,
    Text,
    Words,
    keyed_by,
)
from hexflow_api.profile import InlineProfile


class PoolModel(ResourceModel):
    """Say which model the pool's engines serve, and where its weights come from."""

    name: ModelName
    """The name that callers use and that the engine lists under /v1/models."""
    source: Annotated[str, StringConstraints(max_length=1024, pattern=WEIGHTS_URL)] | None = None
    """Where the weights are (hf://…, pvc://claim/path, s3://…, oci://…); absent: Hugging Face, by name."""
    hf_token_secret_ref: SecretKeyRef | None = None
    """Token for gated models on Hugging Face."""


class GpuRequest(ResourceModel):
    """Say which GPUs one instance takes."""

    count: Annotated[int, Strict(), Field(ge=1, le=64)] = 1
    """GPUs of one instance."""
    resource_name: Annotated[str, StringConstraints(min_length=3, max_length=253)] = "nvidia.com/gpu"
    """The extended resource that the device plug-in offers."""


class Engine(ResourceModel):
    """Adjust the inference server of the pods that are made."""

    image: Text | None = None
    """Image of the inference server; absent: a vLLM that HexFlow is tested with."""
    args: Annotated[tuple[Words, ...], Field(max_length=128)] = ()
    """Further arguments, passed through untouched."""
    env: Annotated[tuple[Native, ...], Field(max_length=128)] = ()
    """Environment variables, as Kubernetes has them."""
    env_from: Annotated[tuple[Native, ...], Field(max_length=32)] = ()
    """Secrets and ConfigMaps that become environment variables."""
    port: Annotated[int, Strict(), Field(ge=1, le=65535)] | None = None
    """Port that it listens on; absent: 8000."""


class PersistentVolumeClaimCache(ResourceModel):
    """Keep weights on a claim that exists."""

    claim_name: ObjectName
    """Name of the claim."""
    sub_path: Text | None = None
    """Folder within it."""


class HostPathCache(ResourceModel):
    """Keep weights in a folder of the node."""

    path: Annotated[str, StringConstraints(max_length=1024, pattern=ABSOLUTE_PATH)]
    """The folder, an absolute path."""


class Cache(ResourceModel):
    """Say where the pods keep downloaded weights: exactly one of the three."""

    empty_dir: Native | None = None
    """A folder that goes with the pod; {} has no limit."""
    pvc: PersistentVolumeClaimCache | None = None
    """A claim that exists."""
    host_path: HostPathCache | None = None
    """A folder of the node."""


class ProfileSource(ResourceModel):
    """Say how fast an instance is: exactly one of the three."""

    inline: InlineProfile | None = None
    """The numbers themselves."""
    config_map_ref: ConfigMapKeyRef | None = None
    """A ConfigMap's key that holds the numbers as JSON or YAML (what `hexflow tune` writes)."""
    builtin: LabelValue | None = None
    """Name of a built-in profile, when gpuType and model do not find it."""


class Endpoint(ResourceModel):
    """Point at one OpenAI-compatible server that runs already."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    """The server's root, such as http://10.0.0.7:8000; a trailing slash or /v1 is taken off."""
    api_key_secret_ref: SecretKeyRef | None = None
    """Key that the server asks for."""
    ca_secret_ref: SecretKeyRef | None = None
    """Certificate authority of a server with a private certificate."""

    @field_validator("url")
    @classmethod
    def _root(cls, url: str) -> str:
        return url.rstrip("/").removesuffix("/v1").rstrip("/")


class GPUPoolSpec(ResourceModel):
    """Say what the pool is made of."""

    gpu_type: LabelValue
    """Type of GPU, such as A100-80GB, L40S or A6000; the key of the speed profile."""
    model: PoolModel
    """The model that every instance of the pool serves."""
    replicas: Annotated[int, Strict(), Field(ge=0, le=1000)] | None = None
    """Instances wanted; absent: one on a laptop, the Deployment's own count in a cluster."""
    gpu: GpuRequest | None = None
    """GPUs of one instance; absent: as many as tensorParallelSize."""
    tensor_parallel_size: Annotated[int, Strict(), Field(ge=1, le=64)] | None = None
    """GPUs over which one copy of the model is spread; absent: gpu.count."""
    max_model_len: Annotated[int, Strict(), Field(ge=256, le=16_777_216)] | None = None
    """Most tokens of prompt and output together; absent: what the model says."""
    max_num_seqs: Annotated[int, Strict(), Field(ge=1, le=65_536)] | None = None
    """Calls that run at once on one instance; absent: what the profile says."""
    prefix_caching: Flag = True
    """Whether prompts that begin alike share their prefill."""
    priority_scheduling: Flag = True
    """Whether the engine orders its own waiting calls by the priority that the router sends."""
    engine: Engine | None = None
    """The inference server of the pods."""
    placement: Placement | None = None
    """Where the pods may run."""
    cache: Cache | None = None
    """Where the pods keep downloaded weights."""
    shared_memory: Quantity | None = None
    """Size of /dev/shm, which several GPUs need; such as 8Gi."""
    resources: Native | None = None
    """CPU and memory of the pods, as Kubernetes has them."""
    profile: ProfileSource | None = None
    """How fast an instance is; absent: built-in by gpuType and model, then learned."""
    selector: LabelSelector | None = None
    """Use vLLM pods of your own with these labels."""
    endpoints: (
        Annotated[tuple[Endpoint, ...], Field(min_length=1, max_length=64, json_schema_extra=keyed_by("url"))]
        | None
    ) = None
    """Use servers that run already, in the cluster or not."""
    emulated: Flag = False
    """Run emulated instances, which need no GPU and keep the time of one."""
    suspend: Flag = False
    """Keep the pool at no instance."""
    pod_template: Native | None = None
    """Last word on the pods that are made: a strategic merge patch."""

    @property
    def source(self) -> Literal["Pods", "Selector", "Endpoints", "Emulated"]:
        """Where the pool's instances come from."""
        if self.emulated:
            return "Emulated"
        if self.endpoints is not None:
            return "Endpoints"
        return "Pods" if self.selector is None else "Selector"

    @property
    def effective_tensor_parallel_size(self) -> int:
        """GPUs over which one copy of the model is spread."""
        return self.tensor_parallel_size or (self.gpu.count if self.gpu else 1)

    @property
    def effective_replicas(self) -> int:
        """Instances wanted: none when suspended, the listed servers, or ``replicas`` with one as default."""
        if self.suspend:
            return 0
        if self.endpoints is not None:
            return len(self.endpoints)
        return 1 if self.replicas is None else self.replicas


class GPUPool(Resource):
    """The same model on the same kind of GPU, a number of times."""

    kind: Literal["GPUPool"] = "GPUPool"
    spec: GPUPoolSpec
