"""The custom resources GPUPool and TextToSQLWorkflow: models, rules, loader and built-in GPU profiles.

The router's configuration, the laptop mode's and the cluster's are these resources. This package must not
know what is built on it: no scheduler, no router, no HTTP, no database.
"""

from hexflow_api.condition import Condition, ConditionType, Reason
from hexflow_api.gpu import GPUS, gpu_named
from hexflow_api.gpupool import Endpoint, GPUPool, GPUPoolSpec
from hexflow_api.inforce import profile_of
from hexflow_api.laptop import laptop_warnings
from hexflow_api.load import load_resources, load_text, parse_resource
from hexflow_api.manifest import ConfigMap, Secret
from hexflow_api.meta import API_VERSION, ConfigMapKeyRef, LabelSelector, ObjectMeta, SecretKeyRef
from hexflow_api.policy import DEFAULT_POLICY, POLICIES
from hexflow_api.problem import Problem, ResourceError
from hexflow_api.profile import InlineProfile, Profile, builtin_profile, builtin_profiles, estimated_profile
from hexflow_api.resources import Resources
from hexflow_api.rule import Rule
from hexflow_api.secret import (
    SQLITE_SCHEME,
    SecretMissing,
    absolute_dsn,
    read_secret,
    secret_refs,
    write_secrets,
)
from hexflow_api.status import (
    GPUPoolStatus,
    ParameterInForce,
    RecommendedParameter,
    TextToSQLWorkflowStatus,
)
from hexflow_api.violation import RULES, Violation, refused_changes, violations
from hexflow_api.workflow import (
    Database,
    Parameter,
    Pinned,
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
    "Condition",
    "ConditionType",
    "ConfigMap",
    "ConfigMapKeyRef",
    "Database",
    "Endpoint",
    "GPUPool",
    "GPUPoolSpec",
    "GPUPoolStatus",
    "InlineProfile",
    "LabelSelector",
    "ObjectMeta",
    "Parameter",
    "ParameterInForce",
    "Pinned",
    "Problem",
    "Profile",
    "Reason",
    "RecommendedParameter",
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
    "TextToSQLWorkflowStatus",
    "Violation",
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
    "refused_changes",
    "secret_refs",
    "violations",
    "write_secrets",
]
