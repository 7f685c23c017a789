"""The rules of a GPUPool."""

import re
from typing import Final
from urllib.parse import urlsplit

from hexflow_api.rule import Rule, exactly_one, names, seen_before, selectors, set_fields, unless

_ADDRESS: Final = r"^[Hh][Tt][Tt][Pp][Ss]?://([^/@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?([/?#]([!-$&-~]|%[0-9A-Fa-f]{2})*)?$"
"""Scheme, perhaps user and password, host or IPv6 address, perhaps port, then anything in printable ASCII."""


def _root_of_a_server(url: str) -> str:
    """Return ``url`` as two ways to write one server are compared: a trailing slash or /v1 makes no difference."""
    return f"{url}/".replace("//", "/").replace("/v1/", "/")


def _is_server(url: str) -> bool:
    try:
        return re.search(_ADDRESS, url) is not None and urlsplit(url).port != 0
    except ValueError:
        return False


def _addresses() -> tuple[Rule, ...]:
    path = "spec.endpoints[*].url"
    return (
        Rule(
            kind="GPUPool",
            path=path,
            cel=f"self.matches(r'{_ADDRESS}') && isURL(self)"
            " && (url(self).getPort() == '' || (int(url(self).getPort()) > 0 && int(url(self).getPort()) < 65536))",
            message="must be the http:// or https:// address of a server, such as http://10.0.0.7:8000",
            faults=lambda url: unless(_is_server(url)),
        ),
        Rule(
            kind="GPUPool",
            path=path,
            cel="!self.matches('^[^/]*//[^/]*@')",
            message="must not hold a user or password; put the key into a Secret and name it in apiKeySecretRef",
            faults=lambda url: unless(not re.match(r"[^/]*//[^/]*@", url)),
        ),
        Rule(
            kind="GPUPool",
            path=path,
            cel="!self.contains('?') && !self.contains('#')",
            message="must not hold a query or fragment; give the server's root",
            faults=lambda url: unless("?" not in url and "#" not in url),
        ),
        Rule(
            kind="GPUPool",
            path="spec.endpoints",
            # the list in a list gives the addresses a name, for want of cel.bind
            cel="[self.map(each, (each.url + '/').replace('//', '/').replace('/v1/', '/'))]"
            ".all(urls, urls.all(a, urls.exists_one(b, b == a)))",
            message="each url may be listed once; take the second one out",
            faults=lambda endpoints: (
                f"[{index}].url" for index in seen_before(_root_of_a_server(each.url) for each in endpoints)
            ),
        ),
    )


POOL_RULES: Final[tuple[Rule, ...]] = (
    *names("GPUPool"),
    Rule(
        kind="GPUPool",
        path="spec",
        field="model",
        cel="self.model == oldSelf.model || (has(self.suspend) && self.suspend)"
        " || (has(oldSelf.suspend) && oldSelf.suspend)",
        message="model may change only while the pool is suspended, for one pool serves one model;"
        " set suspend: true first, or make a second pool",
        faults=lambda spec: (),
        changed=lambda old, new: old.model != new.model and not (old.suspend or new.suspend),
    ),
    Rule(
        kind="GPUPool",
        path="spec",
        cel="[has(self.selector), has(self.endpoints), has(self.emulated) && self.emulated].filter(given, given).size() <= 1",
        message="a pool has one source of instances: keep one of selector, endpoints and emulated,"
        " or none to have pods made",
        faults=lambda spec: unless(len(set_fields(spec, "selector", "endpoints", "emulated")) <= 1),
    ),
    Rule(
        kind="GPUPool",
        path="spec",
        field="tensorParallelSize",
        cel="!has(self.tensorParallelSize) || !has(self.gpu) || !has(self.gpu.count) || self.tensorParallelSize <= self.gpu.count",
        message="tensorParallelSize must not exceed gpu.count; raise gpu.count or leave one of the two out",
        faults=lambda spec: unless(
            spec.gpu is None
            or spec.tensor_parallel_size is None
            or "count" not in spec.gpu.model_fields_set
            or spec.tensor_parallel_size <= spec.gpu.count,
            "tensorParallelSize",
        ),
    ),
    *_addresses(),
    Rule(
        kind="GPUPool",
        path="spec.selector",
        cel="(has(self.matchLabels) && self.matchLabels.size() > 0)"
        " || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
        message="selector must ask for some label, else every pod of the namespace were an instance;"
        " add matchLabels or matchExpressions",
        faults=lambda selector: unless(bool(selector.match_labels or selector.match_expressions)),
    ),
    selectors("GPUPool", "spec.selector"),
    exactly_one(
        "GPUPool",
        "spec.profile",
        "inline",
        "configMapRef",
        "builtin",
        remedy="or leave profile out to have the built-in one of gpuType and model",
    ),
    exactly_one("GPUPool", "spec.cache", "emptyDir", "pvc", "hostPath", remedy="or leave cache out"),
)
"""What must hold of a GPUPool."""
