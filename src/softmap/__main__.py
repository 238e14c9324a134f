"""`python -m softmap`, and the command `softmap`."""

import gc
import os
import sys


def main() -> int:
    """Run the command line; Ctrl-C leaves a sentence from the first moment on.

    No command needs the threads of OpenBLAS. Loading numpy would start them, and they wait busily.
    Modules make about 50,000 objects that stay: to look for garbage among them takes as long as a
    small solve.
    """
    gc.set_threshold(200_000)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from softmap.app.cli.app import main as command

        return command()
    except KeyboardInterrupt:
        print("softmap: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
