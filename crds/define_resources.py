"""Define the resources: `python crds/define_resources.py` rewrites crds/*.hexflow.dev.yaml from the models."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hexflow_api.crd import CUSTOM_RESOURCES, as_yaml, definition

FOLDER = Path(__file__).parent


def main(arguments: Sequence[str]) -> int:
    """Write the definitions, or with --check say whether one is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a committed file is stale")
    options = parser.parse_args(arguments)
    texts = {FOLDER / f"{each.name}.yaml": as_yaml(definition(each)) for each in CUSTOM_RESOURCES}
    if options.check:
        return int(
            any(
                not path.is_file() or path.read_text(encoding="utf-8") != text for path, text in texts.items()
            )
        )
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
