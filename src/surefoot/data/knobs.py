"""Settings: a knob is written once, with its default, help, legal values and the names other libraries have for it."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import reprlib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self, TypeVar

from surefoot.data.kinds import Kind
from surefoot.errors import ConfigError, RenamedWarning

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 80


def knob(default: Any, help: str, kind: Kind, *, shown: Any = MISSING, names: tuple[str, ...] = ()) -> Any:
    """Return a dataclass field that carries its help, its kind and its other names.

    `shown` is the default to print where it differs from `default`.
    """
    described = default if shown is MISSING else shown
    return field(default=default, metadata={"help": help, "kind": kind, "default": described, "names": names})


def _kinds(config: Any) -> dict[str, Kind]:
    return {entry.name: entry.metadata["kind"] for entry in fields(config)}


def _refusal(name: str, value: Any, kind: Kind, why: Exception) -> ConfigError:
    detail = f" ({why})" if isinstance(why, ConfigError) else ""
    return ConfigError(f"{name} is {_BRIEF.repr(value)}; it must be {kind.legal}{detail}")


def settle(config: Any) -> None:
    """Check every knob of a new config and put its value into the one form; for `__post_init__`."""
    for name, kind in _kinds(config).items():
        value = getattr(config, name)
        try:
            object.__setattr__(config, name, kind.accept(value))
        except (TypeError, ValueError, OverflowError) as why:
            raise _refusal(name, value, kind, why) from None


def parse_knob(config: Any, name: str, text: str) -> Any:
    """The value of the knob `name` of `config` (a class or an instance) that `text` stands for."""
    kind = _kinds(config)[name]
    try:
        return kind.accept(kind.parse(text))
    except (TypeError, ValueError, OverflowError) as why:
        raise _refusal(name, text, kind, why) from None


def read_texts(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with text turned into what its knob means by it; names that are no knobs of `config` pass."""
    kinds = _kinds(config)
    return {
        name: parse_knob(config, name, value) if isinstance(value, str) and name in kinds else value
        for name, value in values.items()
    }


C = TypeVar("C", bound="Config")
Meaning = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names by which people know the knobs of one config."""

    knobs: Mapping[str, tuple[str, ...]]
    """{knob: its other names}; every knob is there."""
    meanings: Mapping[str, Meaning] = field(default_factory=dict[str, Meaning])
    """{name: what it sets}, for names that are more than another word for one knob."""
    hints: Mapping[str, str] = field(default_factory=dict[str, str])
    """{name: why it is refused}, for names of other libraries that have no counterpart."""
    former: Mapping[str, str] = field(default_factory=dict[str, str])
    """{former name: setting}, for renamed settings. They work for one release, with a notice."""

    def names(self) -> set[str]:
        """Return every accepted name."""
        names = {name for knob, others in self.knobs.items() for name in (knob, *others)}
        return names | set(self.meanings) | set(self.former)

    def current(self, name: str) -> str:
        """Return `name`, or with a notice what a setting of this former name is called now."""
        if name in self.former:
            warn_renamed(name, self.former[name])
        return self.former.get(name, name)

    def translate(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """`said` by the knobs' own names. Two names for one knob are an error; names must be known."""
        owner = {name: knob for knob, others in self.knobs.items() for name in (knob, *others)}
        found: dict[str, Any] = {}
        by: dict[str, str] = {}
        for name, value in said.items():
            meant = self.meanings[name](value) if name in self.meanings else {owner[self.current(name)]: value}
            for target, its_value in meant.items():
                if target in by:
                    raise ConfigError(f"{by[target]} and {name} both set {target}; give one of them")
                by[target], found[target] = name, its_value
        return found


def warn_renamed(former: str, name: str) -> None:
    """Issue a one-line notice that a setting has a new name, at the first caller outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("surefoot."):
        level, frame = level + 1, frame.f_back
    message = f"the setting {former} is now {name}; the old name goes in the next release"
    warnings.warn(message, RenamedWarning, stacklevel=level)


def accept_former_names(cls: type[C]) -> type[C]:
    """Let a config class be constructed and read under the former names in its vocabulary, with a notice."""
    former, init = cls.vocabulary().former, cls.__init__

    @functools.wraps(init)
    def construct(self: C, **values: Any) -> None:
        for old in [name for name in values if name in former]:
            name, value = former[old], values.pop(old)
            if name in values:
                raise ConfigError(f"{old} and {name} both set {name}; give one of them")
            warn_renamed(old, name)
            values[name] = value
        init(self, **values)

    cls.__init__ = construct
    for old, name in former.items():

        def read(self: C, old: str = old, name: str = name) -> Any:
            warn_renamed(old, name)
            return getattr(self, name)

        setattr(cls, old, property(read))
    return cls


def vocabulary_of(config: Any) -> Vocabulary:
    """Return the names that the knobs of a config class carry themselves."""
    return Vocabulary({entry.name: entry.metadata["names"] for entry in fields(config)})


def require_known(said: Iterable[str], known: Iterable[str], hints: Mapping[str, str]) -> None:
    """ConfigError for names that are not `known`, with what was probably meant or what `hints` says of the name."""
    names = sorted(set(known))
    strangers = [name for name in said if name not in names]
    if strangers:
        raise ConfigError("; ".join(_about(name, names, hints) for name in strangers))


def _about(name: str, known: list[str], hints: Mapping[str, str]) -> str:
    if name in hints:
        return f"{name} is not taken: {hints[name]}"
    close = difflib.get_close_matches(name, known, n=2)
    advice = f"did you mean {' or '.join(close)}?" if close else "`surefoot knobs` lists them all"
    return f"no setting is called {name!r}; {advice}"


class Config:
    """Base of the config classes: frozen dataclasses whose fields are knobs.

    Every knob is checked when an instance is made. Names of other libraries are accepted wherever knobs are named, and
    text is read as the value that it stands for. A subclass overrides `check` for rules that concern several knobs,
    `vocabulary` for names that mean more than one knob, and `canonical` where names need other values to be understood.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __post_init__(self) -> None:
        settle(self)
        self.check()

    def check(self) -> None:
        """Raise `ConfigError` if knobs contradict each other. Every value is legal by itself when this is called."""

    @classmethod
    def vocabulary(cls) -> Vocabulary:
        """Return the names by which people know the knobs."""
        return vocabulary_of(cls)

    @classmethod
    def canonical(cls, names: Mapping[str, Any]) -> dict[str, Any]:
        """Return `names` by the knobs' own names; values that are text become what they stand for."""
        vocabulary = cls.vocabulary()
        require_known(names, vocabulary.names(), vocabulary.hints)
        return read_texts(cls, vocabulary.translate(names))

    @classmethod
    def make(cls, **names: Any) -> Self:
        """Return a config from any names that people know the knobs by; the rest are defaults."""
        return cls().replace(**names)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some knobs changed, under any of their names."""
        return dataclasses.replace(self, **self.canonical(changes))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` makes an equal config."""
        return {name: kind.to_json(getattr(self, name)) for name, kind in _kinds(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the config that `to_json` wrote, or any part of it, under any names."""
        # Files of earlier releases are read without a notice: nobody can rename what is in them.
        former = cls.vocabulary().former
        return cls.make(**{former.get(name, name): value for name, value in data.items()})

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """Return one row per knob (name, type, default, legal, help, aliases) for docs, command line and node panels."""
        others = cls.vocabulary().knobs
        rows: list[dict[str, Any]] = []
        for entry in fields(cls):
            kind: Kind = entry.metadata["kind"]
            rows.append(
                {
                    "name": entry.name,
                    "type": kind.type,
                    "default": kind.to_json(entry.metadata["default"]),
                    "legal": kind.legal,
                    "help": entry.metadata["help"],
                    "aliases": list(others[entry.name]),
                }
            )
        return rows
