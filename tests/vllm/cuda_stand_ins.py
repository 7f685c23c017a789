"""Let the CUDA build of torch run on a machine without a GPU and without NVIDIA's packages.

Its libraries name a dozen NVIDIA libraries as needed, so ``import torch`` fails without them, although
a run on the CPU never calls them. This compiles stand-ins for exactly the names and functions asked
for, where torch looks for them: each function says "no device". They hold none of NVIDIA's code.
Run with the environment's own Python; needs a C compiler and binutils.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

NO_DEVICE = 100
"""cudaErrorNoDevice: what makes ``torch.cuda.is_available()`` say no."""
ASKED_FOR = re.compile(
    r"__cuda|cuda|cu[A-Z]|cublas|cudnn|cusparse|cufft|curand|cusolver|cupti|nccl|nvrtc|nvshmem|nvml|nvJit"
)

Functions = dict[str, dict[str, str]]
"""Library -> function -> its symbol version, empty where it has none."""


def output_of(*command: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def needed_by(libraries: list[Path]) -> list[str]:
    """Return the NVIDIA libraries that these name as needed and that are not among them."""
    have = {library.name for library in libraries}
    names = {
        name
        for library in libraries
        for name in re.findall(r"NEEDED.*\[(.+?)\]", output_of("readelf", "-dW", str(library)))
    }
    return sorted(name for name in names - have if re.match(r"lib(cu|nccl|nv)", name))


def functions_of(libraries: list[Path], needed: list[str]) -> Functions:
    """Return which function is asked of which needed library, and under which version.

    glibc insists that a versioned function comes from the library that is named for it; functions
    without a version may come from any, and go to the CUDA runtime's.
    """
    runtime = next(name for name in needed if name.startswith("libcudart"))
    library_of_version: dict[str, str] = {}
    for library in libraries:
        current = ""
        for line in output_of("readelf", "-VW", str(library)).splitlines():
            if match := re.search(r"File: (\S+)", line):
                current = match[1]
            elif (match := re.search(r"Name: (\S+)\s+Flags", line)) and current in needed:
                library_of_version[match[1]] = current
    functions: Functions = {name: {} for name in [runtime, *needed]}
    for library in libraries:
        for symbol in re.findall(r" U (\S+)", output_of("nm", "-D", "--undefined-only", str(library))):
            name, _, version = symbol.partition("@")
            version = version.lstrip("@")
            if ASKED_FOR.match(name):
                owner = library_of_version.get(version, runtime)
                functions[owner].setdefault(name, version if version in library_of_version else "")
    return functions


def body(function: str) -> str:
    """Return the C source of one stand-in."""
    if re.search(r"(ErrorString|ErrorName|StatusString)$|^ncclGetLastError$", function):
        return f"const char *{function}(void) {{ return message; }}"
    if function == "cudaGetDeviceCount":
        return f"int {function}(int *count) {{ if (count) *count = 0; return {NO_DEVICE}; }}"
    if function == "__cudaRegisterFatBinary":
        return f"void **{function}(void) {{ return handle; }}"
    return f"int {function}(void) {{ return {NO_DEVICE}; }}"


def compile_one(compiler: str, library: Path, functions: dict[str, str]) -> None:
    """Compile one stand-in with the symbol versions asked of it."""
    by_version: dict[str, list[str]] = {}
    for name, version in sorted(functions.items()):
        by_version.setdefault(version, []).append(name)
    script = "".join(
        f"{version} {{ {' '.join(f'{name};' for name in names)} }};\n"
        for version, names in by_version.items()
        if version
    )
    head = 'static const char message[] = "no CUDA here (stand-in library)"; static void *handle[16];'
    options = ["-shared", "-fPIC", "-O1", "-s", "-fno-builtin", "-w", f"-Wl,-soname,{library.name}"]
    map_file = library.with_name("map")
    if script:
        map_file.write_text(script)
        options.append(f"-Wl,--version-script={map_file}")
    subprocess.run(
        [compiler, *options, "-o", str(library), "-x", "c", "-"],
        input="\n".join([head, *map(body, sorted(functions))]),
        text=True,
        check=True,
    )
    map_file.unlink(missing_ok=True)


def main() -> None:
    """Write the stand-ins that this environment's torch asks for."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit("torch is not installed in this environment")
    libraries = sorted((Path(spec.origin).parent / "lib").glob("*.so*"))
    needed = needed_by(libraries)
    if not needed:
        sys.stdout.write("this torch needs no NVIDIA library\n")
        return
    functions = functions_of(libraries, needed)
    major = next(m[1] for name in needed if (m := re.fullmatch(r"libcudart\.so\.(\d+).*", name)))
    folder = Path(sysconfig.get_paths()["platlib"]) / "nvidia" / f"cu{major}" / "lib"
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "STAND-INS").exists():
        sys.exit(f"{folder} holds real libraries; nothing was written")
    compiler = os.environ.get("CC") or shutil.which("cc") or sys.exit("no C compiler")
    folder.mkdir(parents=True, exist_ok=True)
    for name, asked in functions.items():
        compile_one(compiler, folder / name, asked)
    (folder / "STAND-INS").write_text("\n".join(needed) + "\n")
    sys.stdout.write(
        f"{len(needed)} stand-ins with {sum(map(len, functions.values()))} functions in {folder}\n"
    )


if __name__ == "__main__":
    main()
