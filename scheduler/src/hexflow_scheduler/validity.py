"""What makes an input valid: checked once, at the kernel's door."""

from math import inf, isfinite

from hexflow_scheduler.call import Call, Usage
from hexflow_scheduler.errors import InvalidInput
from hexflow_scheduler.instance import Instance


def check_instant(now: float) -> None:
    """Raise InvalidInput unless ``now`` is an instant."""
    if not isfinite(now):
        raise InvalidInput(f"now is an instant in seconds since the epoch, not {now!r}")


def check_call(call: Call) -> None:
    """Raise InvalidInput for a call that makes no sense."""
    if _makes_sense(call):
        return
    for name in ("call_id", "query_id", "model"):
        if not getattr(call, name):
            raise InvalidInput(f"a call has a {name}, not an empty one (call {call.call_id!r})")
    for name, least in (
        ("prompt_tokens", 0),
        ("max_tokens", 1),
        ("samples", 1),
        ("round", 0),
        ("sibling", 0),
    ):
        value = getattr(call, name)
        if value < least:
            raise InvalidInput(f"{name} of call {call.call_id!r} is at least {least}, not {value}")
    for block in call.prefix:
        if block.tokens < 0:
            raise InvalidInput(
                f"a prefix block of call {call.call_id!r} has at least 0 tokens, not {block.tokens}"
            )
    if not (isfinite(call.tenant_weight) and call.tenant_weight > 0):
        raise InvalidInput(
            f"tenant_weight of call {call.call_id!r} is above zero, not {call.tenant_weight!r}"
        )
    for name in ("query_arrival", "deadline", "expires", "budget_seconds"):
        value = getattr(call, name)
        if value is not None and not isfinite(value):
            raise InvalidInput(f"{name} of call {call.call_id!r} is a number of seconds, not {value!r}")


def _makes_sense(call: Call) -> bool:
    """Say at once whether all is well with a call, which it nearly always is; what is not, ``check_call`` says."""
    deadline, expires, budget = call.deadline, call.expires, call.budget_seconds
    for block in call.prefix:
        if block.tokens < 0:
            return False
    return (
        call.call_id != ""
        and call.query_id != ""
        and call.model != ""
        and call.prompt_tokens >= 0
        and call.max_tokens >= 1
        and call.samples >= 1
        and call.round >= 0
        and call.sibling >= 0
        and 0 < call.tenant_weight < inf
        and -inf < call.query_arrival < inf
        and (deadline is None or -inf < deadline < inf)
        and (expires is None or -inf < expires < inf)
        and (budget is None or -inf < budget < inf)
    )


def check_usage(usage: Usage) -> None:
    """Raise InvalidInput for counts below zero."""
    cached, first = usage.cached_tokens, usage.first_token_seconds
    if (
        0 <= usage.prompt_tokens < inf
        and 0 <= usage.output_tokens < inf
        and (cached is None or 0 <= cached < inf)
        and (first is None or 0 <= first < inf)
    ):
        return
    for name in ("prompt_tokens", "output_tokens", "cached_tokens", "first_token_seconds"):
        value = getattr(usage, name)
        if value is not None and not (isfinite(value) and value >= 0):
            raise InvalidInput(f"{name} of a finished call is zero or more, not {value!r}")


def check_instance(instance: Instance) -> None:
    """Raise InvalidInput for an instance without a name or with an impossible profile."""
    if not instance.instance_id:
        raise InvalidInput("an instance has an id, not an empty one")
    profile = instance.profile
    for name in ("t0", "t1", "t2", "c1", "c2"):
        value = getattr(profile, name)
        if not (isfinite(value) and value >= 0):
            raise InvalidInput(
                f"{name} of instance {instance.instance_id!r} is zero or more seconds, not {value!r}"
            )
    if profile.t0 + profile.t1 <= 0:
        raise InvalidInput(f"a step of instance {instance.instance_id!r} takes time: t0 + t1 is above zero")
    for name in ("slots", "kv_tokens"):
        value = getattr(profile, name)
        if value < 1:
            raise InvalidInput(f"{name} of instance {instance.instance_id!r} is at least 1, not {value}")
    if instance.max_context is not None and instance.max_context < 1:
        raise InvalidInput(
            f"max_context of instance {instance.instance_id!r} is at least 1, not {instance.max_context}"
        )
