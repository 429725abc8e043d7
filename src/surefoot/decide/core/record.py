"""The record of one decision: the query, the candidates, the choice and its true probability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from surefoot.decide.policy.choosers import NOTHING, Experience, OptionChoice
from surefoot.decide.policy.outcome_model import Scene

_SCENE = ("x", "option", "cosine")
_CHOICE = ("probabilities", "worth", "prior", "learned", "base", "plausible")
# JSON has no dtypes. These are the ones that decisions had in files that keep arrays as lists.
_LISTED: dict[str, Any] = {"option": np.int64, "probabilities": np.float64, "plausible": np.bool_}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision, with everything that learning and explaining need."""

    id: str
    name: str | None
    """The option to take; None: none of these."""
    names: list[str]
    """The candidates, in the order of `scene` and `choice`."""
    scene: Scene
    choice: OptionChoice
    confidence: float
    """Expected success rate, 0 … 1, calibrated on past outcomes."""
    encoder: str = ""
    """Name of the encoder that made the vectors; a policy of another encoder cannot learn from this record."""
    text: str = ""
    contrast: np.ndarray = field(default_factory=NOTHING.copy)
    """[d]: the chosen candidate's vector minus the expected one; empty unless candidates change between decisions."""

    @property
    def probability(self) -> float:
        return self.choice.probability

    @property
    def version(self) -> int:
        return self.choice.version

    @property
    def probabilities(self) -> dict[str, float]:
        return {name: float(p) for name, p in zip(self.names, self.choice.probabilities, strict=True)}

    def experience(self, reward: float) -> Experience:
        """Return what a chooser learns from; `reward` lies in 0 … 1."""
        return Experience(scene=self.scene, choice=self.choice, reward=reward, id=self.id)

    def imitated(self, at: int) -> Self:
        """Return the record with the application's choice instead of the policy's: nothing was drawn, so it is certain."""
        choice, certain = self.choice, np.zeros(len(self.names), np.float32)
        certain[at] = 1.0
        copied = replace(
            choice,
            at=at,
            probability=1.0,
            probabilities=certain,
            # -1e3 instead of -inf: the probability is exactly 0, and differences of logits stay finite.
            base=np.where(certain > 0, 0.0, -1e3).astype(np.float32) if len(choice.base) else choice.base,
            plausible=certain > 0 if len(choice.plausible) else choice.plausible,
        )
        return replace(self, name=self.names[at], choice=copied, contrast=NOTHING)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values, arrays as lists; floats survive exactly."""
        return self._numbers() | {name: array.tolist() for name, array in self._arrays().items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], **fields: Any) -> Self:
        """Return the record of `to_json`; `fields` are those of it that stand elsewhere, the id at least."""
        listed = (*_SCENE, *_CHOICE, *(("contrast",) if "contrast" in values else ()))
        arrays = {n: np.array(values[n], _LISTED.get(n, np.float32)) for n in listed}
        return cls._from({**values, **fields}, arrays)

    def pack(self) -> tuple[dict[str, Any], bytes]:
        """Return a small JSON header, and every array as it lies in memory, end to end."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self._arrays().items()}
        # `dtype.str` contains the byte order: the journal may be read on another machine.
        layout = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
        return self._numbers() | {"arrays": layout}, b"".join(array.tobytes() for array in arrays.values())

    @classmethod
    def unpack(cls, header: Mapping[str, Any], raw: bytes, *, id: str) -> Self:
        """Return the record of `pack`."""
        arrays, begin = dict[str, np.ndarray](), 0
        for name, (dtype, length) in header["arrays"].items():
            # Without the copy the arrays would be read-only, and each would keep all of `raw` in memory.
            arrays[name] = np.frombuffer(raw, dtype, length, begin).copy()
            begin += arrays[name].nbytes
        return cls._from({**header, "id": id}, arrays)

    def _numbers(self) -> dict[str, Any]:
        choice = self.choice
        return {
            "encoder": self.encoder,
            "name": self.name,
            "names": list(self.names),
            "confidence": self.confidence,
            "text": self.text,
            "at": choice.at,
            "probability": choice.probability,
            "value": choice.value,
            "score": choice.score,
            "version": choice.version,
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        scene = {name: getattr(self.scene, name) for name in _SCENE}
        contrast = {"contrast": self.contrast} if len(self.contrast) else {}
        return scene | {name: np.asarray(getattr(self.choice, name)) for name in _CHOICE} | contrast

    @classmethod
    def _from(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        choice = OptionChoice(
            at=int(values["at"]),
            probability=float(values["probability"]),
            value=float(values["value"]),
            confidence=float(values.get("score", math.nan)),  # records of the first release have none
            version=int(values["version"]),
            **{name: arrays[name] for name in _CHOICE},
        )
        return cls(
            id=values["id"],
            name=values["name"],
            names=list(values["names"]),
            scene=Scene(**{name: arrays[name] for name in _SCENE}),
            choice=choice,
            confidence=float(values["confidence"]),
            encoder=values["encoder"],
            text=values["text"],
            contrast=arrays.get("contrast", NOTHING),
        )
