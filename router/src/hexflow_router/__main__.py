"""``python -m hexflow_router``."""

import sys

from hexflow_router.main import main

if __name__ == "__main__":
    sys.exit(main())
