"""The custom resources GPUPool and TextToSQLWorkflow: models, rules, loader and built-in GPU profiles.

The router's configuration, the laptop mode's and the cluster's are these resources. This package must not
know what is built on it: no scheduler, no router, no HTTP, no database.
"""

from .gpu import GPUS, gpu_named
from .gpupool import Endpoint, GPUPool, GPUPoolSpec
from .inforce import profile_of
from .laptop import laptop_warnings
from .load import load_resources, load_text, parse_resource
from .manifest import ConfigMap, Secret
from .meta import API_VERSION, ConfigMapKeyRef, LabelSelector, ObjectMeta, SecretKeyRef
from .policy import DEFAULT_POLICY, POLICIES
from .problem import Problem, ResourceError
from .profile import Profile, builtin_profile, builtin_profiles, estimated_profile
from .resources import Resources
from .rule import RULES, Rule
from .secret import (
    SQLITE_SCHEME,
    SecretMissing,
    absolute_dsn,
    read_secret,
    secret_refs,
    write_secrets,
)
from .workflow import (
    Database,
    Parameter,
    Scheduling,
    Slo,
    SloClass,
    Stage,
    Tenant,
    TextToSQLWorkflow,
    TextToSQLWorkflowSpec,
)

__all__ = [
    "API_VERSION",
    "DEFAULT_POLICY",
    "GPUS",
    "POLICIES",
    "RULES",
    "SQLITE_SCHEME",
    "ConfigMap",
    "ConfigMapKeyRef",
    "Database",
    "Endpoint",
    "GPUPool",
    "GPUPoolSpec",
    "LabelSelector",
    "ObjectMeta",
    "Parameter",
    "Problem",
    "Profile",
    "ResourceError",
    "Resources",
    "Rule",
    "Scheduling",
    "Secret",
    "SecretKeyRef",
    "SecretMissing",
    "Slo",
    "SloClass",
    "Stage",
    "Tenant",
    "TextToSQLWorkflow",
    "TextToSQLWorkflowSpec",
    "absolute_dsn",
    "builtin_profile",
    "builtin_profiles",
    "estimated_profile",
    "gpu_named",
    "laptop_warnings",
    "load_resources",
    "load_text",
    "parse_resource",
    "profile_of",
    "read_secret",
    "secret_refs",
    "write_secrets",
]
