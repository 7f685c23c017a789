"""`python -m hexflow_cli` is the command `hexflow`."""

from hexflow_cli import main

if __name__ == "__main__":
    main()
