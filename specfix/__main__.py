"""``specfix``, and ``python -m specfix``."""

import gc
import sys

YOUNG = 100_000  # objects, of which a short run makes few that it does not keep; the default is 700


def main() -> int:
    """Run the command line; returns the exit status."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from specfix import __version__

        try:  # scripts ask for it in passing: before Typer is imported
            print(f"specfix {__version__}", flush=True)
            return 0
        except OSError:
            pass  # the command line has words for that
    gc.set_threshold(YOUNG)
    try:
        from specfix.cli import main as command_line

        return command_line()
    except KeyboardInterrupt:  # while that is still imported, or what it prints with
        return 130
    finally:
        gc.freeze()  # at its end Python would look for garbage among all that was imported: a fifth of a check's time


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # where this was started: nothing is to be imported from there
    sys.exit(main())
