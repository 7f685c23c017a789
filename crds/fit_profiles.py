"""Fit the built-in profiles: `python crds/fit_profiles.py` rewrites hexflow_api/data/profiles.json.

Input is gpu_profiles.csv beside this file: milliseconds of prefill (a whole prompt, alone) and of decode
(one token at a batch and a context) per GPU, model and tensor parallel size, each row with its source.

* Decode: ``t0`` and ``t1`` by least squares of the relative error over the batches. All rows of one fit
  share one context, so ``t2`` cannot be told from ``t1`` by the data: it is the time to read a token's
  keys and values from memory at the data sheet's bandwidth.
* Prefill: ``c1`` and ``c2`` by least squares of the relative error over the prompt lengths.
* Computed decode times (not measured ones) run 10 to 20 % optimistic: they are multiplied by 1.15.
* A pair without rows is scaled from one that has them, and marked as estimated.
"""

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hexflow_api.architecture import Architecture, architecture_of
from hexflow_api.gpu import GPUS, Gpu, gpu_named
from hexflow_api.profile import BuiltinProfile, data_sheet_profile, kv_token_capacity

HERE = Path(__file__).parent
ROWS = HERE / "gpu_profiles.csv"
PROFILES = HERE / "src" / "hexflow_api" / "data" / "profiles.json"

COMPUTED_IS_OPTIMISTIC = 1.15
"""What computed decode times are multiplied by."""
A6000_OF_A100 = (2.2, 1.7)
"""Prefill and decode time of an A6000 over those of an A100 at the same parallel size."""


class Measurement(NamedTuple):
    """One row of the table, in seconds."""

    tokens: int
    batch: int
    seconds: float
    source: str


Key = tuple[Gpu, Architecture, int]


def read_rows(path: Path) -> dict[tuple[Key, str], list[Measurement]]:
    """Return the rows by instance and phase; rows of no known parallel size belong to no instance."""
    found: dict[tuple[Key, str], list[Measurement]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            gpu, model = gpu_named(row["gpu"]), architecture_of(row["model"])
            parallel = int(row["tensor_parallel"])
            if gpu is None or model is None:
                raise SystemExit(f"{path}: no GPU or model is known as {row['gpu']}, {row['model']}")
            if parallel == 0:
                continue
            computed = row["phase"] == "decode" and not row["source"].startswith("measured")
            found[(gpu, model, parallel), row["phase"]].append(
                Measurement(
                    tokens=int(row["prompt_or_context_tokens"]),
                    batch=int(row["batch"]),
                    seconds=float(row["milliseconds"]) / 1000 * (COMPUTED_IS_OPTIMISTIC if computed else 1),
                    source=row["source"],
                )
            )
    return found


def fit_two(rows: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the non-negative a, b that minimise the relative error of ``a*x + b*y = z`` over (x, y, z)."""
    weighted = [(x / z, y / z) for x, y, z in rows]
    xx, xy, yy = (sum(p[i] * p[j] for p in weighted) for i, j in ((0, 0), (0, 1), (1, 1)))
    x1, y1 = sum(p[0] for p in weighted), sum(p[1] for p in weighted)
    determinant = xx * yy - xy * xy
    a, b = (x1 * yy - y1 * xy) / determinant, (y1 * xx - x1 * xy) / determinant
    if a < 0:
        return 0.0, y1 / yy
    return (a, b) if b >= 0 else (x1 / xx, 0.0)


def fit_decode(rows: Sequence[Measurement], *, t2: float) -> tuple[float, float]:
    """Return t0 and t1 of rows that share their context."""
    # relative weights are taken from what is left after the share of t2, which is never near zero
    return fit_two([(1.0, row.batch, row.seconds - t2 * row.batch * row.tokens) for row in rows])


def fit_prefill(rows: Sequence[Measurement]) -> tuple[float, float]:
    """Return c1 and c2."""
    return fit_two([(row.tokens, row.tokens**2 / 2, row.seconds) for row in rows])


def fit_all(path: Path) -> list[BuiltinProfile]:
    """Return every built-in profile, sorted by name."""
    rows = read_rows(path)
    profiles: dict[str, BuiltinProfile] = {}
    instances = {key for key, _ in rows}
    for gpu, model, parallel in instances:
        decode = rows[(gpu, model, parallel), "decode"]
        prefill = rows.get(((gpu, model, parallel), "prefill"), [])
        sheet = data_sheet_profile(gpu, model, parallel)
        t0, t1 = fit_decode(decode, t2=sheet.t2)
        source = decode[0].source
        if decode[0].source.startswith("measured"):
            source += "; prefill estimated"
        c1, c2 = fit_prefill(prefill) if prefill else (sheet.c1, sheet.c2)
        profile = _profile(gpu, model, parallel, (t0, t1, sheet.t2, c1, c2), source=source)
        profiles[profile.name] = profile
    a6000 = next(gpu for gpu in GPUS if gpu.name == "A6000")
    for profile in list(profiles.values()):
        if profile.gpu == "A100-80GB":
            model = _architecture(instances, profile.model)
            scaled = _scaled(profile, a6000, model)
            measured = profiles.get(scaled.name)
            profiles[scaled.name] = (
                measured.model_copy(
                    update={
                        "c1": scaled.c1,
                        "c2": scaled.c2,
                        "source": f"{measured.source} as A100 x {A6000_OF_A100[0]}",
                    }
                )
                if measured
                else scaled
            )
    return sorted(profiles.values(), key=lambda profile: profile.name)


def _architecture(instances: set[Key], name: str) -> Architecture:
    return next(model for _, model, _ in instances if model.name == name)


def _scaled(profile: BuiltinProfile, gpu: Gpu, model: Architecture) -> BuiltinProfile:
    prefill, decode = A6000_OF_A100
    times = (
        profile.t0 * decode,
        profile.t1 * decode,
        profile.t2 * decode,
        profile.c1 * prefill,
        profile.c2 * prefill,
    )
    return _profile(
        gpu,
        model,
        profile.tensor_parallel,
        times,
        source=f"{profile.name} x {prefill} prefill, x {decode} decode",
        estimated=True,
    )


def _profile(
    gpu: Gpu,
    model: Architecture,
    parallel: int,
    times: tuple[float, float, float, float, float],
    *,
    source: str,
    estimated: bool = False,
) -> BuiltinProfile:
    t0, t1, t2, c1, c2 = (float(f"{time:.4g}") for time in times)
    return BuiltinProfile(
        name=f"{gpu.name}-{model.name}-tp{parallel}".lower(),
        gpu=gpu.name,
        model=model.name,
        tensor_parallel=parallel,
        t0=t0,
        t1=t1,
        t2=t2,
        c1=c1,
        c2=c2,
        kv_tokens=kv_token_capacity(gpu, model, parallel),
        source=source,
        estimated=estimated,
    )


def rendered(profiles: Sequence[BuiltinProfile]) -> str:
    """Return the table as it is committed."""
    table = [profile.model_dump(by_alias=True) for profile in profiles]
    return json.dumps(table, indent=2) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the table, or with --check say whether it is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if the committed table is stale")
    options = parser.parse_args(arguments)
    text = rendered(fit_all(ROWS))
    if not options.check:
        PROFILES.write_text(text, encoding="utf-8")
        return 0
    return 0 if PROFILES.read_text(encoding="utf-8") == text else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
