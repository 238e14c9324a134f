"""`python -m softmap`, and the command `softmap`."""

import gc
import os
import signal
import sys


def main() -> int:
    """Run the command line; Ctrl-C, SIGTERM and SIGHUP print a sentence, also during imports.

    OpenBLAS gets one thread: no command needs more, and idle threads spin. The garbage collector
    runs rarely, because scanning the 50,000 permanent objects of the modules takes as long as a
    small solve.
    """
    for name in ("SIGTERM", "SIGHUP"):  # temporary files are then removed; Windows has one of them
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
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
