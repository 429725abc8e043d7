"""Tiny models with real tokenizers, made here: nothing is downloaded."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parent))

from lm_helpers import VOCABULARY, char_tokenizer, tiny


@pytest.fixture
def tokenizer() -> Any:
    return char_tokenizer()


@pytest.fixture
def saved(tmp_path: Any) -> str:
    """A folder `from_pretrained` loads: a tiny GPT-2 and a tokenizer without a pad token."""
    folder = str(tmp_path / "tiny")
    tiny(vocabulary=VOCABULARY).save_pretrained(folder)
    char_tokenizer().save_pretrained(folder)
    return folder
