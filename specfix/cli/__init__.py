"""The command line: one module per command. Chooses exit codes; what is printed is made by report/.

Exit status: 0 nothing to report; 1 findings; 2 it could not check; 130 interrupted; 141 the reader went away.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated

import typer

from specfix import __version__
from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck

# The base of Typer's usage errors. It is Click's, which Typer brings from outside or, lately, inside itself.
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]

MESSAGE_LIMIT = 2_000  # characters; a path may have twice as many

# each a module here, and the function in it
COMMANDS = ("check", "fix", "gate", "explain", "rules", "engine", "hardware")


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands. Typer looks at every option of every command, so the one that is asked for
    is had alone."""
    app = typer.Typer(
        name="specfix",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        app.command()(getattr(import_module(f"specfix.cli.{name}"), name))
    app.callback()(specfix)
    return app


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"specfix {__version__}")
        raise typer.Exit


def specfix(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Check, and repair, a vLLM speculative-decoding pair before a GPU is taken."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if sys.stdout is None:  # closed by whoever started this: nothing could be said
        return complain("standard output is closed")
    try:
        given, command = split(sys.argv[1:] if arguments is None else arguments)
        app = application([given[0]] if given and given[0] in COMMANDS else COMMANDS)
        outcome = app(given, prog_name="specfix", standalone_mode=False, obj=command)
        if not isinstance(outcome, Outcome):
            return outcome or 0  # help or version, printed by Typer
        say(outcome.text)
        return outcome.status
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except (BrokenPipeError, SystemExit) as ended:
        # Typer, and Rich below it, end with 1 where nobody reads their help
        if isinstance(ended, SystemExit) and not isinstance(ended.__context__, BrokenPipeError):
            raise
        drop_output()
        return 141
    except CannotCheck as problem:
        return complain(str(problem))
    except UsageProblem as problem:
        return complain(usage(problem))
    except OSError as problem:  # a loader names what it cannot read; this is the disk
        return complain(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem))
    except Exception as bug:
        import traceback

        from specfix.report.terminal import write

        if sys.stderr is not None:
            write("".join(f"{safe(line)}\n" for line in traceback.format_exc().splitlines()), sys.stderr)
        return complain(f"{type(bug).__name__} above is a bug of specfix or of a plugin: please report it")


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments, and the launch command that follows them after ``--``. A lone word there is a name that begins
    with a dash, and stays where it is."""
    given = list(arguments)
    if given[:1] == ["check"] and "--" in given:
        at = given.index("--")
        if len(given) - at > 2 and not given[at + 1].startswith("-"):
            return given[:at], given[at + 1 :]
    return given, []


def say(text: str) -> None:
    """Print it. Raises CannotCheck where that cannot be, and BrokenPipeError where nobody reads it."""
    from specfix.report.terminal import write

    try:
        write(text, sys.stdout)
    except BrokenPipeError:
        raise
    except OSError as problem:
        drop_output()
        raise CannotCheck(f"standard output cannot be written: {problem.strerror or problem}") from None


def drop_output() -> None:
    """What the buffer still holds cannot be written, and Python would complain when it closes the stream at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def usage(problem: Exception) -> str:
    """What Typer has to say, in one line."""
    context = getattr(problem, "ctx", None)
    message = getattr(problem, "format_message", problem.__str__)().replace("Value error, ", "")  # pydantic's prefix
    return f"{message} (see {context.command_path if context else 'specfix'} --help)"


def complain(message: str) -> int:
    """Say on stderr why it could not check; returns the exit status for that."""
    from specfix.report.terminal import write

    if sys.stderr is not None:
        with suppress(OSError):  # nobody to tell it to: the status still says it
            write(f"specfix: error: {safe(message)}\n", sys.stderr)
    return 2


def safe(message: str) -> str:
    """What may be said of what strangers wrote: no secret, nothing that a terminal obeys, nothing without end."""
    from specfix.report.secrets import hidden_in_launch
    from specfix.report.terminal import printable

    text = printable(hidden_in_launch(message))
    half = MESSAGE_LIMIT // 2
    return text if len(text) <= MESSAGE_LIMIT else f"{text[:half]} … {text[-half:]}"
