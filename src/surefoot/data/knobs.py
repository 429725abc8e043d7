"""Settings: each is declared once, with its default, help, legal values and its names in other libraries."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import reprlib
import textwrap
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
    """Validate every setting of a new config and convert its value to the canonical form; for `__post_init__`."""
    for name, kind in _kinds(config).items():
        value = getattr(config, name)
        try:
            object.__setattr__(config, name, kind.accept(value))
        except (TypeError, ValueError, OverflowError) as why:
            raise _refusal(name, value, kind, why) from None


def parse_knob(config: Any, name: str, text: str) -> Any:
    """Return the value of `text` for the setting `name` of `config` (a class or an instance)."""
    kind = _kinds(config)[name]
    try:
        return kind.accept(kind.parse(text))
    except (TypeError, ValueError, OverflowError) as why:
        raise _refusal(name, text, kind, why) from None


def read_texts(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with text parsed by its setting; names that are not settings of `config` are unchanged."""
    kinds = _kinds(config)
    return {
        name: parse_knob(config, name, value) if isinstance(value, str) and name in kinds else value
        for name, value in values.items()
    }


C = TypeVar("C", bound="Config")
Meaning = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The accepted names of the settings of one config."""

    knobs: Mapping[str, tuple[str, ...]]
    """{setting: its other names}, for every setting."""
    meanings: Mapping[str, Meaning] = field(default_factory=dict[str, Meaning])
    """{name: function from its value to {setting: value}}, for names that are more than an alias."""
    hints: Mapping[str, str] = field(default_factory=dict[str, str])
    """{name: why it is rejected}, for names of other libraries that have no counterpart."""
    former: Mapping[str, str] = field(default_factory=dict[str, str])
    """{former name: setting}, for renamed settings. They work for one release, with a notice."""

    def names(self) -> set[str]:
        names = {name for knob, others in self.knobs.items() for name in (knob, *others)}
        return names | set(self.meanings) | set(self.former)

    def current(self, name: str) -> str:
        """Return `name`, or with a notice what a setting of this former name is called now."""
        if name in self.former:
            warn_renamed(name, self.former[name])
        return self.former.get(name, name)

    def translate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return `values` by the names of the settings. All names must be known; two names for one setting are an error."""
        owner = {name: knob for knob, others in self.knobs.items() for name in (knob, *others)}
        result: dict[str, Any] = {}
        source: dict[str, str] = {}
        for name, value in values.items():
            meant = self.meanings[name](value) if name in self.meanings else {owner[self.current(name)]: value}
            for target, its_value in meant.items():
                if target in source:
                    raise ConfigError(f"{source[target]} and {name} both set {target}; pass one of them")
                source[target], result[target] = name, its_value
        return result


def warn_renamed(former: str, name: str) -> None:
    """Issue a one-line notice that a setting has a new name, at the first caller outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("surefoot."):
        level, frame = level + 1, frame.f_back
    message = f"the setting {former} is now {name}; the old name goes in the next release"
    warnings.warn(message, RenamedWarning, stacklevel=level)


def args_section(helps: Mapping[str, str]) -> str:
    """Return {parameter: help} as the `Args:` section of a docstring."""
    rows = (f"{name}: {' '.join(text.split())}" for name, text in helps.items())
    # 112: with the four spaces that `help` adds, lines stay within 120 characters.
    return "Args:\n" + "\n".join(
        textwrap.fill(row, 112, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)
        for row in rows
    )


def documented(cls: type[C]) -> type[C]:
    """Add the help of every setting to the docstring of a config class."""
    cls.__doc__ = f"{cls.__doc__}\n\n{args_section({x.name: x.metadata['help'] for x in fields(cls)})}\n"
    return cls


def accept_former_names(cls: type[C]) -> type[C]:
    """Let a config class be constructed and read under the former names in its vocabulary, with a notice."""
    former, init = cls.vocabulary().former, cls.__init__

    @functools.wraps(init)
    def construct(self: C, **values: Any) -> None:
        for old in [name for name in values if name in former]:
            name, value = former[old], values.pop(old)
            if name in values:
                raise ConfigError(f"{old} and {name} both set {name}; pass one of them")
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
    """Return the names that are declared with the settings of a config class."""
    return Vocabulary({entry.name: entry.metadata["names"] for entry in fields(config)})


def require_known(requested: Iterable[str], known: Iterable[str], hints: Mapping[str, str]) -> None:
    """Raise `ConfigError` for names that are not `known`, with the nearest known name or the hint for the name."""
    names = sorted(set(known))
    problems: list[str] = []
    for name in requested:
        if name in hints and name not in names:
            problems.append(f"{name} is not accepted: {hints[name]}")
        elif name not in names:
            close = difflib.get_close_matches(name, names, n=2)
            advice = f"did you mean {' or '.join(close)}?" if close else "`surefoot knobs` lists all settings"
            problems.append(f"no setting is called {name!r}; {advice}")
    if problems:
        raise ConfigError("; ".join(problems))


class Config:
    """Base of the config classes: frozen dataclasses whose fields are declared by `knob`.

    Every setting is validated when an instance is created. Names of other libraries are accepted wherever settings are
    named, and text is parsed. A subclass overrides `check` for rules on several settings, `vocabulary` for names that
    stand for several settings, and `canonical` if the meaning of a name depends on other values.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __post_init__(self) -> None:
        settle(self)
        self.check()

    def check(self) -> None:
        """Raise `ConfigError` if settings contradict each other. Every single value is already valid."""

    @classmethod
    def vocabulary(cls) -> Vocabulary:
        """Return the accepted names of the settings."""
        return vocabulary_of(cls)

    @classmethod
    def canonical(cls, names: Mapping[str, Any]) -> dict[str, Any]:
        """Return `names` by the names of the settings, with text parsed."""
        vocabulary = cls.vocabulary()
        require_known(names, vocabulary.names(), vocabulary.hints)
        return read_texts(cls, vocabulary.translate(names))

    @classmethod
    def make(cls, **names: Any) -> Self:
        """Return a config from settings under any accepted names; the others have their defaults."""
        return cls().replace(**names)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with changed settings, under any accepted names."""
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
        """Return one row per setting (name, type, default, legal, help, aliases) for docs, command line and node panels."""
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
