"""Golden pairs: `tests/golden/<case>/resource.yaml` in, `children/*.yaml` out.

`python tests/support/golden.py` writes the children anew, and `--release 0.2.0` the pod templates of a release. Read
the difference before it is committed: a change to a pod template restarts pods at an upgrade.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hexflow_operator.defaults import Defaults
from hexflow_operator.difference import APPLIED_ANNOTATION
from hexflow_operator.observed import ROUTER_NAME, Key, Observed
from hexflow_operator.plan import plan

GOLDEN = Path(__file__).parents[1] / "golden"
RELEASES = "release-"
NAMESPACE = "team"
NOW = 1_796_000_000.0
Object = dict[str, Any]


def cases() -> list[str]:
    """Return the names of the cases. Each begins with what is reconciled: pool-, workflow- or router-."""
    return sorted(path.parent.name for path in GOLDEN.glob("*/resource.yaml"))


def observed_of(case: str) -> tuple[Key, Observed]:
    """Return the key of a case, and what a first reconcile observes: the resources and no child."""
    documents = [
        as_stored(document, number)
        for number, document in enumerate(yaml.safe_load_all((GOLDEN / case / "resource.yaml").read_text()))
    ]
    by_kind = {
        kind: tuple(each for each in documents if each["kind"] == kind)
        for kind in ("GPUPool", "TextToSQLWorkflow", "ConfigMap")
    }
    kind = {"pool": "GPUPool", "workflow": "TextToSQLWorkflow", "router": "Router"}[case.partition("-")[0]]
    primary = None if kind == "Router" else by_kind[kind][0]
    name = primary["metadata"]["name"] if primary else ROUTER_NAME
    observed = Observed(
        primary=primary,
        pools=by_kind["GPUPool"],
        workflows=by_kind["TextToSQLWorkflow"],
        config_maps=by_kind["ConfigMap"],
    )
    return Key(kind, NAMESPACE, name), observed  # type: ignore[arg-type]


def as_stored(document: Object, number: int) -> Object:
    """Return a resource with the metadata that the API server gives it."""
    given = {"creationTimestamp": "2026-11-30T07:00:00Z", "generation": 1, "resourceVersion": str(number + 1)}
    metadata = {**given, **document["metadata"], "namespace": NAMESPACE}
    metadata["uid"] = f"00000000-0000-4000-8000-{number:012}"
    return {**document, "metadata": metadata}


def rendered(case: str) -> dict[str, str]:
    """Return the children of a case as files: name -> YAML."""
    key, observed = observed_of(case)
    return {file_name(each): text_of(each) for each in plan(key, observed, Defaults(), NOW).apply}


def file_name(child: Object) -> str:
    """Return the file of a child."""
    return f"{child['kind'].lower()}.yaml"


def text_of(child: Object) -> str:
    """Return a child as YAML, without the hash of itself."""
    metadata = dict(child["metadata"])
    annotations = {k: v for k, v in metadata.pop("annotations", {}).items() if k != APPLIED_ANNOTATION}
    child = {**child, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
    text = _yaml(child)
    too_long = any(len(line) > 200 for line in text.splitlines())
    return f"# yamllint disable rule:line-length\n{text}" if too_long else text


def pod_templates(case: str) -> Iterator[tuple[str, str]]:
    """Yield the pod templates of a case as files."""
    key, observed = observed_of(case)
    for child in plan(key, observed, Defaults(), NOW).apply:
        if child["kind"] == "Deployment":
            yield f"{case}.yaml", _yaml(child["spec"]["template"])
        elif child["kind"] == "CronJob":
            yield f"{case}.yaml", _yaml(child["spec"]["jobTemplate"]["spec"]["template"])


def _yaml(value: Object) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=110, explicit_start=True)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _literal(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _literal)


def regenerate() -> None:
    """Write the children of every case."""
    for case in cases():
        folder = GOLDEN / case / "children"
        folder.mkdir(exist_ok=True)
        files = rendered(case)
        for path in folder.iterdir():
            if path.name not in files:
                path.unlink()
        for name, text in files.items():
            (folder / name).write_text(text)


def write_release(version: str) -> None:
    """Write the pod templates of a release, which the next one is compared with."""
    folder = GOLDEN / f"{RELEASES}{version}-pods"
    folder.mkdir(exist_ok=True)
    for case in cases():
        for name, text in pod_templates(case):
            (folder / name).write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--release"]:
        write_release(sys.argv[2])
    else:
        regenerate()
