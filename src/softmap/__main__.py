"""`python -m softmap`."""

import sys

from softmap.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
