"""Describe the resources: `make generate` rewrites docs/reference/resources.md from the models."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hexflow_api import GPUS, RULES, ConditionType, Reason, builtin_profiles
from hexflow_api.crd import CUSTOM_RESOURCES, OLDEST_KUBERNETES, CustomResource

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "resources.md"

INTRODUCTION = f"""\
# Resources

<!-- Written by `make generate` from the models in hexflow_api; change those. -->

Two kinds of object say everything that HexFlow needs to know: a **GPUPool** for each kind of GPU, and a
**TextToSQLWorkflow** for each set of databases that questions are asked of. The same files work on a laptop
(`hexflow up -f DIR`) and in a cluster (`kubectl apply -f DIR`); `examples/laptop/` has a complete set.
`hexflow validate -f DIR` says what is wrong with yours: each mistake with its file, line, field and remedy, in the words of
the API server (`--secrets-elsewhere` where the Secrets are in the cluster alone).

A cluster runs Kubernetes **{OLDEST_KUBERNETES}** or newer and is given the definitions, `crds/*.yaml`; then `kubectl explain gpool.spec`
says what is said here, `kubectl get hexflow` shows both kinds, and what breaks a rule is refused when it is applied.

Both have `apiVersion: hexflow.dev/v1alpha1`, their `kind`, and `metadata` with a `name`: a DNS label of at most
40 characters that does not begin with `hexflow-`. Unknown fields are refused. Passwords and keys are only
ever named, as `{{name, key}}` of a Secret in the same namespace; on a laptop a v1 `Secret` among the files will do.
"""

IN_A_CLUSTER = """\
## In a cluster

What is left out is filled in by nobody: an object is read back as it was applied. Lists of things with a name (or a `url`, or
a `type`) are maps to the API server, so that several may own a part of one. `kubectl scale gpool NAME` sets
`replicas`, as an autoscaler does on a pool that has it; on a pool without it an autoscaler is told that there is none.
Unknown fields are refused by `kubectl apply` and taken out of other writes with a warning; operator and
router pass over what they do not know, so that a roll-back survives an object of the newer version.

The operator alone writes `status`. `Ready` is the sum of the conditions:

| condition | when it is True |
| --- | --- |
"""

AFTERWORD = """\
## On a laptop

Files are read as `kubectl` reads them: several documents in a file, folders without what is below them,
`*.yaml` and `*.yml` up to 3 MB. v1 Secrets and ConfigMaps among them are used, objects of other kinds are
passed over. Fields that only matter to pods (`engine`, `placement`, `cache`, `sharedMemory`, `resources`,
`podTemplate`, `router`, `tuning`) are read and checked, and `hexflow up` says that they have no effect.
A SQLite address such as `sqlite:///shop.sqlite` is relative to the folder of the file that holds the Secret.
"""


def page() -> str:
    """Return the page as it is committed."""
    kinds = (line for each in CUSTOM_RESOURCES for line in _kind(each))
    return "\n".join([INTRODUCTION, *kinds, *_profiles(), *_cluster(), AFTERWORD])


def _kind(resource: CustomResource) -> Iterator[str]:
    model = resource.model
    yield f"## {model.__name__}\n"
    yield f"{(model.__doc__ or '').strip()} `{resource.short_name}` for short.\n"
    yield "| field of `spec` | what it may be | default | meaning |"
    yield "| --- | --- | --- | --- |"
    schema = resource.spec.model_json_schema(by_alias=True)
    for path, field, required in _fields(schema, schema, ""):
        default = "**required**" if required else _default(field)
        yield f"| `{path}` | {_type(field, schema)} | {default} | {_sentence(field)} |"
    yield "\nWhat must hold besides:\n"
    yield from (f"* `{rule.place}`: {rule.message}." for rule in RULES if rule.kind == model.__name__)
    yield ""
    yield from _status(resource.status)


def _status(model: type[BaseModel]) -> Iterator[str]:
    yield "| field of `status` | what it is | meaning |"
    yield "| --- | --- | --- |"
    schema = model.model_json_schema(by_alias=True)
    for path, field, _ in _fields(schema, schema, ""):
        yield f"| `{path}` | {_type(field, schema)} | {_sentence(field)} |"
    yield ""


def _cluster() -> Iterator[str]:
    rows = "\n".join(f"| `{each}` | {each.sentence} |" for each in ConditionType)
    yield IN_A_CLUSTER + rows
    yield "\n| reason | what it means |"
    yield "| --- | --- |"
    yield from (f"| `{each}` | {each.sentence} |" for each in Reason)
    yield ""


def _fields(
    schema: dict[str, Any], root: dict[str, Any], above: str
) -> Iterator[tuple[str, dict[str, Any], bool]]:
    for name, field in schema.get("properties", {}).items():
        path = f"{above}.{name}" if above else name
        yield path, field, name in schema.get("required", ())
        inner = _resolved(field, root)
        item = _resolved(inner.get("items", {}), root)
        named = _resolved(_group(inner.get("additionalProperties")), root)
        if item.get("properties"):
            yield from _fields(item, root, f"{path}[]")
        elif named.get("properties"):
            yield from _fields(named, root, f"{path}.*")
        elif inner.get("properties") and not (
            path.endswith("Ref") and set(inner["properties"]) == {"name", "key"}
        ):
            yield from _fields(inner, root, path)


def _group(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


def _resolved(field: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference, and take the one alternative that is not null."""
    for alternative in field.get("anyOf", ()):
        if alternative.get("type") != "null":
            return _resolved(alternative, root)
    if "$ref" in field:
        return _resolved(root["$defs"][field["$ref"].rpartition("/")[2]], root)
    return field


def _type(field: dict[str, Any], root: dict[str, Any]) -> str:
    plain = _resolved(field, root)
    names = plain.get("enum") or field.get("enum") or ([plain["const"]] if "const" in plain else None)
    if names:
        return " \\| ".join(f"`{name}`" for name in names)
    kind = plain.get("type")
    if kind == "array":
        item = _type(plain.get("items", {}), root)
        return {"text": "list of texts", "group": "list of groups", "map": "list of maps"}[item]
    if kind == "object":
        if set(plain.get("properties", ())) == {"name", "key"}:
            return "`{name, key}`"
        return "group" if "properties" in plain else "map"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` \\| `false`"}
    return words.get(str(kind), "anything") + _bounds(plain)


def _bounds(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    parts = [
        f"from {low:g}" if low is not None else f"above {above:g}" if above is not None else "",
        f"to {high:,}".replace(",", " ") if high is not None else "",
    ]
    text = " ".join(part for part in parts if part)
    return f" {text}" if text else ""


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default is None or default == [] or isinstance(default, dict):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _sentence(field: dict[str, Any]) -> str:
    return " ".join(field.get("description", "").split()).replace("|", "\\|")


def _profiles() -> Iterator[str]:
    yield "## Built-in profiles\n"
    yield (
        "A profile says how fast one instance is. One step of an engine with `batch` running calls, `context` tokens\n"
        "attended to in all, and a prefill chunk of `chunk` tokens at depth `depth` of its prompt takes\n"
        "`t0 + t1*batch + t2*context + chunk*(c1 + c2*depth)` seconds. A pool finds its own by `gpuType`,\n"
        "`model.name` (family and size; fine-tuned models run as fast as what they were made from) and\n"
        "`tensorParallelSize`. Where the table has no row one is reckoned from data sheets, and the router corrects\n"
        "what it believes by every call. Times in milliseconds, microseconds where marked; `crds/fit_profiles.py` fits the table.\n"
    )
    yield "| name | t0 | t1 µs | t2 µs | c1 | c2 µs | kvTokens | source |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for profile in builtin_profiles().values():
        numbers = (profile.t0 * 1e3, profile.t1 * 1e6, profile.t2 * 1e6, profile.c1 * 1e3, profile.c2 * 1e6)
        cells = " | ".join(f"{number:,.0f}" if number >= 100 else f"{number:.3g}" for number in numbers)
        mark = " (estimated)" if profile.estimated else ""
        yield f"| `{profile.name}` | {cells} | {profile.kv_tokens} | {profile.source}{mark} |"
    yield "\nGPUs by name; the vendor's, the driver's and GPU feature discovery's spellings are understood:"
    yield f"{', '.join(f'`{gpu.name}`' for gpu in GPUS)}.\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with --check say whether it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if the committed page is stale")
    options = parser.parse_args(arguments)
    if not options.check:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    return 0 if PAGE.read_text(encoding="utf-8") == page() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
