"""SB3's `save_util`: files by path or object, and attributes by dotted names. Values are written as JSON, never as pickles."""

from __future__ import annotations

import io
import json
import warnings
from functools import reduce
from pathlib import Path
from typing import Any

STREAMS = (io.BufferedWriter, io.BufferedReader, io.BytesIO, io.BufferedRandom)


def recursive_getattr(obj: Any, attr: str, *default: Any) -> Any:
    """Return `obj.a.b` for the name "a.b"."""
    return reduce(lambda inner, name: getattr(inner, name, *default), attr.split("."), obj)


def recursive_setattr(obj: Any, attr: str, val: Any) -> None:
    """Set `obj.a.b` for the name "a.b"."""
    outer, _, name = attr.rpartition(".")
    setattr(recursive_getattr(obj, outer) if outer else obj, name, val)


def open_path(path: Any, mode: str, verbose: int = 0, suffix: str | None = None) -> Any:
    """Return an open binary file for a path, or the file object `path` itself if it fits the mode, "r" or "w".

    To read, `path.suffix` is tried second. To write, `suffix` is added to a path without one and missing directories are created.
    """
    if not isinstance(path, (str, Path, *STREAMS)):
        raise TypeError(f"{path!r} is neither a path nor a binary file object")
    kind = str(mode).lower()[:1]
    if str(mode).lower() not in ("r", "w", "read", "write"):
        raise ValueError(f"the mode is {mode!r}; it must be 'r' or 'w'")
    if isinstance(path, STREAMS):
        if path.closed:
            raise ValueError("the file is closed")
        if not (path.writable() if kind == "w" else path.readable()):
            raise ValueError(f"the file is not {'writable' if kind == 'w' else 'readable'}")
        return path
    file, added = Path(path), Path(f"{path}.{suffix}")
    if kind == "r":
        if suffix and not file.exists():
            if verbose >= 2:
                warnings.warn(f"{file} does not exist; trying {added}", UserWarning, stacklevel=2)
            file = added
        return file.open("rb")
    if suffix and not file.suffix:
        file = added
    if file.is_dir():
        warnings.warn(f"{file} is a directory; writing to {file}_2", UserWarning, stacklevel=2)
        file = Path(f"{file}_2")
    if file.is_file() and verbose >= 2:
        warnings.warn(f"{file} exists and is overwritten", UserWarning, stacklevel=2)
    if not file.parent.exists():
        warnings.warn(f"{file.parent} does not exist and is created", UserWarning, stacklevel=2)
        file.parent.mkdir(parents=True)
    return file.open("wb")


def save_to_pkl(path: Any, obj: Any, verbose: int = 0) -> None:
    """Write a value to a file as JSON, in spite of the name; raise `TypeError` for a value that JSON cannot represent."""
    data, opened = json.dumps(obj).encode(), not isinstance(path, STREAMS)
    file = open_path(path, "w", verbose=verbose, suffix="pkl")
    file.write(data)
    if opened:
        file.close()


def load_from_pkl(path: Any, verbose: int = 0) -> Any:
    """Return what `save_to_pkl` wrote; raise `ValueError` for a pickle."""
    opened = not isinstance(path, STREAMS)
    file = open_path(path, "r", verbose=verbose, suffix="pkl")
    data = file.read()
    if opened:
        file.close()
    try:
        return json.loads(data)
    except ValueError as why:
        raise ValueError(f"{path} is not JSON; pickles are not read, because they run code") from why
