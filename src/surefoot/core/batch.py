"""What the loss sees, and what a policy says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from torch import Tensor


@dataclass(slots=True, kw_only=True)
class Batch:
    """Steps laid out [T, B, …]. A memoryless policy gets T = 1 and no padding; a sequential one keeps its streams."""

    obs: dict[str, Tensor]
    action: Tensor
    log_prob: Tensor
    """Of the policy that acted, stored when it acted."""
    value: Tensor
    """Of the critic at that time."""
    advantage: Tensor
    target: Tensor
    """advantage + value: what the critic should have said."""
    valid: Tensor | None = None
    """True = counts; None = all do."""
    action_mask: Tensor | None = None
    ref_log_prob: Tensor | None = None
    start: Tensor | None = None
    """True where an episode begins; only sequential policies get it."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """[B, …]: what each stream walked in with."""

    @property
    def columns(self) -> int:
        """B: how many things there are to choose a minibatch from."""
        return self.advantage.shape[1]

    def take(self, columns: Tensor) -> Batch:
        """The given columns, copied, in that order."""
        return self.each(lambda x, dim: x.index_select(dim, columns))

    def slice(self, begin: int, end: int) -> Batch:
        """Columns begin … end - 1, as views."""
        return self.each(lambda x, dim: x.narrow(dim, begin, end - begin))

    def each(self, choose: Callable[[Tensor, int], Tensor]) -> Batch:
        """What `choose(tensor, its column axis)` makes of every field."""
        # The column axis is the second one everywhere but in `context`, which has no time.
        chosen: dict[str, Tensor | dict[str, Tensor] | None] = {}
        for name in _BATCH_FIELDS:
            part = getattr(self, name)
            if isinstance(part, dict):
                chosen[name] = {key: choose(x, 0 if name == "context" else 1) for key, x in part.items()}
            else:
                chosen[name] = None if part is None else choose(part, 1)
        return Batch(**chosen)  # pyright: ignore[reportArgumentType]  # the loop above keeps every field's own type


_BATCH_FIELDS = tuple(f.name for f in fields(Batch))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the policy of now says about a batch, each [T, B]; `kl` to the reference where it knows better than k3."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor
    kl: Tensor | None = None
