"""What a sample will say, decided when its request arrives: the text, its length, and why it ends.

A real model finds out token by token; an emulated one must know its output's length to keep its time.
"""

from dataclasses import dataclass

from hexflow_emulator import tokens
from hexflow_emulator.protocol import Asked, Prompt, refusal
from hexflow_emulator.speech import Speech, filler


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Hold one sample's output before it is spoken."""

    text: str
    output_tokens: int
    finish_reason: str
    stop_reason: str | None


def room_for(asked: Asked, *, prompt_tokens: int, context: int) -> int:
    """Return the tokens that fit behind a prompt. Raises RequestError as vLLM refuses what cannot fit."""
    if asked.max_tokens is not None and asked.max_tokens > context:
        raise refusal(
            f"max_tokens={asked.max_tokens} cannot be greater than max_model_len={context}. Please request fewer "
            f"output tokens. (parameter=max_tokens, value={asked.max_tokens})",
            param="max_tokens",
        )
    if prompt_tokens >= context:
        raise refusal(
            f"This model's maximum context length is {context} tokens. However, your prompt contains at least "
            f"{prompt_tokens} input tokens, which exceeds this limit even without any output tokens. Please "
            f"reduce the length of the input prompt. (parameter=input_tokens, value={prompt_tokens})",
            param="input_tokens",
        )
    return min(asked.max_tokens or context, context - prompt_tokens)


def plan(asked: Asked, prompt: Prompt, *, sample: int, limit: int, speech: Speech) -> Plan:
    """Return what one sample says within a limit of tokens, its stop words and its least length."""
    said = speech.say(prompt.text, seed=asked.seed, sample=sample)
    text, length, finish, stop = said.text, said.tokens, "stop", None
    least = limit if asked.ignore_eos else min(asked.min_tokens, limit)
    if length < least:
        seed = f"{asked.seed}:{sample}:{prompt.text}"
        text, length = f"{text} {filler(least - length, seed=seed)}", least
    if length > limit:
        text, length, finish = text[: tokens.cut(text, written=limit, total=length)], limit, "length"
    elif asked.ignore_eos:
        finish = "length"
    places = [(place, word) for word in asked.stop if (place := text.find(word)) >= 0]
    if places:
        place, stop = min(places)
        length = max(1, -(-(place + len(stop)) * length // max(1, len(text))))
        text, finish = text[:place], "stop"
    if asked.echo:
        text = prompt.text + text
    return Plan(text=text, output_tokens=length, finish_reason=finish, stop_reason=stop)
