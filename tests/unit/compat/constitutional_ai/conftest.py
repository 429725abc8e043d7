"""Tiny models with real tokenizers, made here: nothing is downloaded."""

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[2] / "lm"))
