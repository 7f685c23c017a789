"""`python -m hexflow_operator` runs the operator."""

import sys

from hexflow_operator.main import main

if __name__ == "__main__":
    sys.exit(main())
