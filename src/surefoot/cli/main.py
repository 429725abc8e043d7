"""The console script: find the verb, read its arguments, run it, and turn errors into one line and an exit code."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from surefoot.cli.catalogue import VERBS, listing, nearest, overview
from surefoot.cli.usage import Usage
from surefoot.errors import RenamedWarning, SurefootError

OK, REFUSED, USAGE = 0, 2, 64
"""Exit codes, the same for every verb; 1 means a finding. 64 is EX_USAGE of sysexits.h."""
_HELP = ("-h", "--help", "help")


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        # A terminal in ASCII or Latin-1 gets a question mark for what it cannot show, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # `surefoot runs | head`: without this, the interpreter would print a traceback at exit.
        sys.stderr.close()
        return OK
    except OSError as error:
        if error.errno is None:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"surefoot: {where}{error.strerror}", file=sys.stderr)
        _drop_output()
        return REFUSED


def _drop_output() -> None:
    """Flush standard output, or throw it away if that fails: the interpreter would complain at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(argv: list[str]) -> int:
    if not argv or (argv[0] in _HELP and len(argv) == 1):
        print(overview())
        return OK if argv else USAGE
    if argv[0] in ("-V", "--version"):
        return _print_version()
    if argv[0] in _HELP:
        return _help(argv[1:])
    name, arguments = split_verb(argv)
    if name not in VERBS:
        verbs = listing(name)
        if verbs is not None and (not arguments or arguments[0] in _HELP):
            print(verbs)
            return OK
        return _unknown([name, *arguments])
    try:
        with warnings.catch_warnings():
            _show_renames_as_notices(name)
            return _run(name, arguments)
    except SurefootError as error:
        print(f"surefoot {name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, Usage) else REFUSED
    except KeyboardInterrupt:
        print(f"surefoot {name}: interrupted", file=sys.stderr)
        return 130  # 128 + SIGINT, as shells report it


def split_verb(argv: list[str]) -> tuple[str, list[str]]:
    """Return the verb, of one word or two, and its arguments; earlier names of verbs are translated."""
    from surefoot.cli.aliases import verb_name

    two = verb_name(" ".join(argv[:2]))
    return (two, argv[2:]) if two in VERBS and len(argv) > 1 else (verb_name(argv[0]), argv[1:])


def _help(words: list[str]) -> int:
    """Print the help of a group or of a verb: `surefoot help tools`, `surefoot help lm ppo`."""
    verbs = listing(words[0]) if len(words) == 1 else None
    if verbs is not None:
        print(verbs)
        return OK
    name, _ = split_verb(words)
    return _run(name, ["--help"]) if name in VERBS else _unknown(words)


def _show_renames_as_notices(verb: str) -> None:
    """Print a renamed setting as one line on stderr, without Python's file, line number and source."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, RenamedWarning):
            print(f"surefoot {verb}: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def _print_version() -> int:
    from importlib.metadata import version

    from surefoot import native

    print(f"surefoot {version('surefoot')}")
    unusable = native.unusable()
    path = f"native path: the C kernel is available ({native.instruction_set()})"
    print(path if unusable is None else f"torch path: {unusable}")
    return OK


def _run(name: str, argv: list[str]) -> int:
    with (
        _environment(argv, "--runs", "SUREFOOT_RUNS") as rest,
        _environment(rest, "--threads", "SUREFOOT_THREADS") as arguments,
    ):
        try:
            args = read_arguments(name, arguments)
        except SystemExit as stop:
            return OK if stop.code in (0, None) else USAGE
        return args.run()


@contextmanager
def _environment(argv: list[str], option: str, variable: str) -> Generator[list[str]]:
    """Take a common option out of the arguments and set its variable for this process and its children meanwhile."""
    remaining = list(argv)
    value = None
    for i, text in enumerate(argv):
        if text == option and i + 1 < len(argv):
            value, remaining = argv[i + 1], argv[:i] + argv[i + 2 :]
        elif text.startswith(f"{option}="):
            value, remaining = text.removeprefix(f"{option}="), argv[:i] + argv[i + 1 :]
    previous = os.environ.get(variable)
    if value is not None:
        os.environ[variable] = value
    try:
        yield remaining
    finally:
        if value is not None and previous is None:
            del os.environ[variable]
        elif value is not None and previous is not None:
            os.environ[variable] = previous


def read_arguments(name: str, argv: list[str]) -> Any:
    """Return the arguments of a verb; its `run` executes it.

    `SystemExit` after --help, or with the error on stderr.
    """
    import tyro

    from surefoot.cli.aliases import current_names
    from surefoot.cli.helptext import ABOUT, described_by, tidy_options

    owner = VERBS[name].load()
    argv, notices = current_names(name, argv)
    as_json = "--json" in argv
    if as_json and not hasattr(owner, "as_json"):
        raise Usage("this verb has no JSON output; leave --json out")
    tidy_options(owner)
    with described_by(owner):
        args = tyro.cli(
            owner,
            prog=f"surefoot {name}",
            description=ABOUT,
            args=[text for text in argv if text != "--json"],
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    for notice in notices:
        print(f"surefoot {name}: {notice}", file=sys.stderr)
    if as_json:
        object.__setattr__(args, "as_json", True)  # argument classes are frozen; `as_json` is their class attribute
    return args


def _unknown(words: list[str]) -> int:
    if words[0].startswith("-"):
        print(f"surefoot: options come after the verb: surefoot train {words[0]} …", file=sys.stderr)
        return USAGE
    close = nearest(" ".join(words[:2]) if listing(words[0]) else words[0])
    family = f" {words[0]}" if listing(words[0]) else ""
    advice = f"did you mean `surefoot {close}`?" if close else f"`surefoot{family} --help` lists the verbs"
    print(f"surefoot: no verb is called {' '.join(words[: 2 if family else 1])!r}; {advice}", file=sys.stderr)
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
