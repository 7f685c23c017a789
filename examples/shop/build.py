"""Write shop.sqlite beside this file, or where the argument says."""

import sys
from pathlib import Path

from hexflow_cli.sample import build_shop

build_shop(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("shop.sqlite"))
