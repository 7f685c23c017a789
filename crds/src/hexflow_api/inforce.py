"""The profile in force of a pool: what it says itself, else what is built in, else what can be reckoned."""

from pydantic import ValidationError

from hexflow_api.architecture import architecture_of
from hexflow_api.document import field_path, read_documents
from hexflow_api.explain import did_you_mean, explain
from hexflow_api.gpu import GPUS, gpu_named
from hexflow_api.gpupool import GPUPool
from hexflow_api.problem import Problem, ResourceError
from hexflow_api.profile import (
    UNKNOWN,
    InlineProfile,
    Profile,
    builtin_profile,
    builtin_profiles,
    estimated_profile,
)
from hexflow_api.resources import Resources


def profile_of(pool: GPUPool, resources: Resources | None = None) -> Profile:
    """Return the profile in force of ``pool``; ``resources`` holds the ConfigMap that it may name.

    In this order: what ``spec.profile`` gives, the built-in table by GPU, model and parallel size, a profile
    reckoned from data sheets. A real engine of unknown speed gets an assumed profile, which the kernel
    corrects; an emulated pool must be known, for it keeps the profile's time. Raises ResourceError.
    """
    profile = _given(pool, resources) or _found(pool)
    slots = pool.spec.max_num_seqs
    return profile if slots is None else profile.model_copy(update={"slots": slots})


def _given(pool: GPUPool, resources: Resources | None) -> Profile | None:
    source = pool.spec.profile
    if source is None:
        return None
    if source.inline is not None:
        return Profile(**dict(source.inline), name="inline", source=f"GPUPool {pool.name}")
    if source.builtin is not None:
        known = builtin_profiles()
        if source.builtin not in known:
            raise _refused(
                pool,
                "spec.profile.builtin",
                f"there is no built-in profile '{source.builtin}'{did_you_mean(source.builtin, list(known))}"
                f"; built in are {', '.join(known)}",
            )
        return known[source.builtin]
    return _configured(pool, resources)


def _configured(pool: GPUPool, resources: Resources | None) -> Profile:
    ref = pool.spec.profile.config_map_ref if pool.spec.profile else None
    assert ref is not None, "a rule demands one source"  # noqa: S101
    path = "spec.profile.configMapRef"
    text = resources.config_value(ref, namespace=pool.metadata.namespace) if resources else None
    if text is None:
        raise _refused(
            pool,
            path,
            f"there is no ConfigMap '{ref.name}' with the key '{ref.key}' here; add it, or correct the name",
        )
    problems: list[Problem] = []
    documents = read_documents(text, file=f"ConfigMap {ref}", problems=problems)
    if problems or len(documents) != 1:
        raise _refused(pool, path, str(problems[0]) if problems else f"{ref} must hold one profile")
    try:
        inline = InlineProfile.model_validate(documents[0].data, by_name=False)
    except ValidationError as error:
        place, message = next(explain(error, InlineProfile))
        raise _refused(pool, path, f"{ref}: {field_path(place)} {message}") from None
    return Profile(**dict(inline), name=f"{ref}", source=f"ConfigMap {ref.name}")


def _found(pool: GPUPool) -> Profile:
    spec = pool.spec
    wanted = (spec.gpu_type, spec.model.name, spec.effective_tensor_parallel_size)
    found = builtin_profile(*wanted) or estimated_profile(*wanted)
    if found:
        return found
    if spec.source != "Emulated":
        return UNKNOWN
    raise _unknown(pool)


def _unknown(pool: GPUPool) -> ResourceError:
    spec = pool.spec
    gpu, model = gpu_named(spec.gpu_type), architecture_of(spec.model.name)
    if gpu is None:
        names = [each.name for each in GPUS]
        return _refused(
            pool,
            "spec.gpuType",
            f"no GPU is known as '{spec.gpu_type}', and an emulated instance keeps a GPU's time"
            f"{did_you_mean(spec.gpu_type, names)}; known are {', '.join(names)}; or give spec.profile.inline",
        )
    if model is None:
        return _refused(
            pool,
            "spec.model.name",
            f"the size of '{spec.model.name}' cannot be told from its name, and an emulated instance keeps a"
            " model's time; give a name like Qwen/Qwen2.5-Coder-7B-Instruct, or spec.profile.inline",
        )
    sizes = [size for size in (1, 2, 4, 8, 16) if estimated_profile(spec.gpu_type, spec.model.name, size)]
    remedy = f"set tensorParallelSize: {sizes[0]}" if sizes else "choose a smaller model"
    return _refused(
        pool,
        "spec.tensorParallelSize",
        f"the weights of {spec.model.name} ({model.weight_bytes / 1e9:.0f} GB) do not fit"
        f" {spec.effective_tensor_parallel_size} x {gpu.name}; {remedy}",
    )


def _refused(pool: GPUPool, path: str, message: str) -> ResourceError:
    return ResourceError([Problem(object=f"GPUPool {pool.name}", path=path, message=message)])
