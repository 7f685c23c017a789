"""The emulator's command line: that of ``vllm serve``, and a few options of its own.

A pod's template is the same for the real engine and this one, so whatever vLLM takes is taken; what has
no meaning without a GPU is accepted with a warning. Each own option may come from the environment too
(``--time-scale`` from HEXFLOW_EMULATOR_TIME_SCALE), for pods whose arguments are not ours to write.
"""

import argparse
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from hexflow_api import InlineProfile, builtin_profile, builtin_profiles, estimated_profile
from hexflow_emulator.errors import EmulatorError
from hexflow_emulator.faults import Fault
from hexflow_emulator.lengths import FORMS, Lengths
from hexflow_scheduler import Profile
from hexflow_simulator import EngineOptions, EngineOrder

ENVIRONMENT = "HEXFLOW_EMULATOR_"
DEFAULT_GPU = "A100-80GB"
DEFAULT_MODEL_LEN = 32_768
DEFAULT_KV_BYTES_PER_TOKEN = 262_144
"""A 32B model with grouped heads in 16 bits: what --kv-cache-memory-bytes is divided by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorOptions:
    """Set up one emulated instance."""

    model: str
    profile: Profile
    served_names: tuple[str, ...] = ()
    """Names the model answers to; empty for the model's own."""
    gpu: str = DEFAULT_GPU
    max_model_len: int = DEFAULT_MODEL_LEN
    engine: EngineOptions = field(default_factory=EngineOptions)
    api_key: str | None = None
    prompt_details: bool = False
    """Whether usage says how many prompt tokens were cached (--enable-prompt-tokens-details)."""
    request_id_headers: bool = False
    shutdown_timeout: float = 0.0
    book: Path | None = None
    lengths: Lengths | None = None
    time_scale: float = 1.0
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    host: str = "0.0.0.0"  # noqa: S104 - as vLLM
    port: int = 8000
    uds: str | None = None
    warnings: tuple[str, ...] = ()
    """What was accepted and has no effect, one sentence each."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names the model answers to; the first is the one it gives itself."""
        return self.served_names or (self.model,)

    @property
    def context(self) -> int:
        """Longest prompt plus output, in tokens: no more than the KV cache holds."""
        block = self.engine.block_tokens
        return min(self.max_model_len, self.profile.kv_tokens // block * block)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise EmulatorError(f"{message}; see --help")


def amount(text: str) -> int:
    """Read a number the way vLLM does: ``4096``, ``32k`` (thousands), ``32K`` (1024s), ``64M``, ``1.5g``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)(?:i?[bB])?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount; write 4096, 32k or 64M")
    power = "kmgt".find(match[2].lower()) + 1 if match[2] else 0
    return int(float(match[1]) * (1000 if match[2].islower() else 1024) ** power)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    root = _Parser(
        prog="hexflow emulate",
        allow_abbrev=False,
        description="An instance that speaks vLLM's HTTP without a GPU.",
    )
    commands = root.add_subparsers(dest="command", required=True, parser_class=_Parser)
    serve = commands.add_parser("serve", allow_abbrev=False, help="serve a model, as `vllm serve` does")
    vllm = serve.add_argument_group("as in vllm serve (others are accepted and have no effect)")
    vllm.add_argument("model_tag", nargs="?", metavar="MODEL")
    vllm.add_argument("--model")
    vllm.add_argument("--host", default="0.0.0.0")  # noqa: S104 - as vLLM
    vllm.add_argument("--port", type=int, default=8000, help="0 takes a free one and prints it")
    vllm.add_argument("--uds", metavar="PATH")
    vllm.add_argument("--served-model-name", nargs="+", default=[], metavar="NAME")
    vllm.add_argument("--max-num-seqs", type=int, metavar="N")
    vllm.add_argument("--max-num-batched-tokens", type=amount, default=2048, metavar="N")
    vllm.add_argument("--max-model-len", metavar="N")
    vllm.add_argument("--scheduling-policy", choices=[order.value for order in EngineOrder], default="fcfs")
    vllm.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
    vllm.add_argument("--block-size", type=int, default=16, metavar="TOKENS")
    vllm.add_argument("--kv-cache-memory-bytes", type=amount, metavar="BYTES")
    vllm.add_argument("--tensor-parallel-size", "-tp", type=int, default=1, metavar="N")
    vllm.add_argument("--api-key", nargs="*", default=None, metavar="KEY")
    vllm.add_argument("--shutdown-timeout", type=float, default=0.0, metavar="SECONDS")
    vllm.add_argument("--enable-prompt-tokens-details", action="store_true")
    vllm.add_argument("--enable-request-id-headers", action="store_true")
    vllm.add_argument("--seed", type=int, default=0)
    own = serve.add_argument_group(
        "of the emulator (each may be set as HEXFLOW_EMULATOR_… in the environment)"
    )
    own.add_argument("--gpu", metavar="TYPE", help=f"whose time to keep (default {DEFAULT_GPU})")
    own.add_argument(
        "--profile",
        metavar="NAME|FILE|JSON",
        help="speed as t0 t1 t2 c1 c2 kvTokens slots, or a built-in one's name",
    )
    own.add_argument("--book", type=Path, metavar="FILE", help="the answer book: what the model says")
    own.add_argument("--output-tokens", metavar="DIST", help=f"words without meaning instead: {FORMS}")
    own.add_argument(
        "--time-scale", type=float, default=1.0, metavar="F", help="run so many times faster than real"
    )
    own.add_argument("--kv-tokens", type=amount, metavar="N", help="tokens that the KV cache holds")
    own.add_argument(
        "--kv-bytes-per-token", type=amount, default=DEFAULT_KV_BYTES_PER_TOKEN, metavar="BYTES",
        help="what --kv-cache-memory-bytes is divided by",
    )  # fmt: skip
    own.add_argument(
        "--fault", action="append", default=[], metavar="SPEC", help="what goes wrong, e.g. error:3"
    )
    return root


def parse(arguments: Sequence[str], *, environment: Mapping[str, str] = os.environ) -> EmulatorOptions:
    """Read the command line. Raises EmulatorError with one sentence and its remedy."""
    given = [_dashed(argument) for argument in arguments]
    given += _from_environment(environment, given)
    known, unknown = parser().parse_known_args(given)
    warnings = [f"{word} has no effect on an emulated instance" for word in unknown if word.startswith("-")]
    model = known.model_tag or known.model
    if not model:
        raise EmulatorError("no model was named; write `serve MODEL`")
    if not (known.time_scale > 0 and known.time_scale < float("inf")):
        raise EmulatorError(f"--time-scale {known.time_scale:g} must be more than 0; 1 is real time")
    if known.book and known.output_tokens:
        raise EmulatorError(
            "--book and --output-tokens exclude each other: say which of them gives the words"
        )
    if known.block_size < 1 or known.max_num_batched_tokens < 1:
        raise EmulatorError("--block-size and --max-num-batched-tokens must be at least 1")
    gpu = known.gpu or DEFAULT_GPU
    profile = _profile(known, gpu=gpu, model=model)
    if not known.gpu and not known.profile:
        warnings.append(f"no --gpu was named: it keeps the time of an {DEFAULT_GPU}")
    return EmulatorOptions(
        model=model,
        served_names=tuple(known.served_model_name),
        gpu=gpu,
        profile=profile,
        max_model_len=_model_len(known.max_model_len),
        engine=EngineOptions(
            order=EngineOrder(known.scheduling_policy),
            block_tokens=known.block_size,
            keep_prefixes=known.enable_prefix_caching,
            step_tokens=known.max_num_batched_tokens,
        ),
        api_key=(known.api_key[0] if known.api_key else None) or environment.get("VLLM_API_KEY"),
        prompt_details=known.enable_prompt_tokens_details,
        request_id_headers=known.enable_request_id_headers,
        shutdown_timeout=known.shutdown_timeout,
        book=known.book,
        lengths=Lengths.parse(known.output_tokens) if known.output_tokens else None,
        time_scale=known.time_scale,
        faults=tuple(Fault.parse(text) for text in known.fault),
        seed=known.seed,
        host=known.host,
        port=known.port,
        uds=known.uds,
        warnings=tuple(warnings),
    )


def _dashed(argument: str) -> str:
    """Return an option with dashes for underscores, which vLLM takes too."""
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def _from_environment(environment: Mapping[str, str], given: Sequence[str]) -> list[str]:
    words: list[str] = []
    for option in (
        "gpu",
        "profile",
        "book",
        "output-tokens",
        "time-scale",
        "kv-tokens",
        "kv-bytes-per-token",
        "fault",
    ):
        value = environment.get(ENVIRONMENT + option.upper().replace("-", "_"))
        if value and not any(word == f"--{option}" or word.startswith(f"--{option}=") for word in given):
            values = shlex.split(value) if option == "fault" else [value]
            words += [f"--{option}={each}" for each in values]
    return words


def _model_len(text: str | None) -> int:
    if text is None or text in ("auto", "-1"):
        return DEFAULT_MODEL_LEN
    try:
        length = amount(text)
    except argparse.ArgumentTypeError as error:
        raise EmulatorError(f"--max-model-len: {error}") from error
    if length < 1:
        raise EmulatorError("--max-model-len must be at least 1")
    return length


def _profile(known: argparse.Namespace, *, gpu: str, model: str) -> Profile:
    values = (
        _given_profile(known.profile) if known.profile else _builtin(gpu, model, known.tensor_parallel_size)
    )
    if known.kv_tokens:
        values["kv_tokens"] = known.kv_tokens
    elif known.kv_cache_memory_bytes:
        values["kv_tokens"] = known.kv_cache_memory_bytes // known.kv_bytes_per_token
    if known.max_num_seqs is not None:
        values["slots"] = known.max_num_seqs
    if values["slots"] < 1 or values["kv_tokens"] < known.block_size:
        raise EmulatorError("an instance needs at least one slot (--max-num-seqs) and one block of KV cache")
    return Profile(**values)


def _builtin(gpu: str, model: str, tensor_parallel: int) -> dict[str, Any]:
    profile = builtin_profile(gpu, model, tensor_parallel) or estimated_profile(gpu, model, tensor_parallel)
    if profile is None:
        raise EmulatorError(
            f"nothing is known of the speed of {model} on {tensor_parallel} x {gpu}, or it does not fit there; "
            "name another --gpu or --tensor-parallel-size, or give its --profile: a file, JSON, "
            f"or one of {', '.join(sorted(builtin_profiles()))}"
        )
    return profile.coefficients()


def _given_profile(text: str) -> dict[str, Any]:
    if builtin := builtin_profiles().get(text):
        return builtin.coefficients()
    try:
        inline = text if text.lstrip().startswith("{") else Path(text).read_text()
        return InlineProfile.model_validate_json(inline).coefficients()
    except OSError as error:
        raise EmulatorError(f"cannot read the profile {text}: {error.strerror}") from error
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or text[:80]}: {fault['msg']}" for fault in error.errors()
        ]
        raise EmulatorError(f"--profile cannot be used: {'; '.join(faults)}") from error
