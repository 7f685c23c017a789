"""Run the emulator: ``python -m hexflow_emulator serve MODEL …``."""

import sys

from hexflow_emulator.main import main

sys.exit(main())
