"""The loop of standalone programs."""

import sys
from dataclasses import dataclass

import pytest

from surefoot.graph.export import program


@dataclass(frozen=True, kw_only=True)
class Config:
    """An example."""

    seed: int = 0
    lr: float = 0.1
    hidden: tuple[int, ...] = (64, 64)
    shared: bool = True
    target_kl: float | None = None


def test_every_field_is_an_option_of_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "--seed 3 --lr 0.5 --hidden 8,16 --shared no --target-kl 0.02 --out here"
    monkeypatch.setattr(sys, "argv", ["program", *words.split()])
    config, out, resume = program.parse(Config, "A title.")
    assert config == Config(seed=3, lr=0.5, hidden=(8, 16), shared=False, target_kl=0.02)
    assert str(out) == "here"
    assert resume is None


def test_without_options_the_defaults_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["program"])
    assert program.parse(Config, "A title.")[0] == Config()
