"""`python -m softmap`, and the command `softmap`."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C leaves a sentence from the first moment on."""
    try:
        from softmap.app.cli.app import main as command

        return command()
    except KeyboardInterrupt:
        print("softmap: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
