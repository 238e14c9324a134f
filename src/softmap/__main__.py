"""`python -m softmap`, and the command `softmap`."""

import gc
import os
import signal
import sys


def main() -> int:
    """Run the command line; Ctrl-C and SIGTERM print a sentence, also during imports.

    OpenBLAS gets one thread: no command needs more, and idle threads spin. The garbage collector
    runs rarely, because scanning the 50,000 permanent objects of the modules takes as long as a
    small solve.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # temporary files are then removed
        signal.signal(signal.SIGTERM, signal.default_int_handler)
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
