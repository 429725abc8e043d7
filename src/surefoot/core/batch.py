"""`Batch`: the steps that a loss is computed on. `Evaluation`: log-probs, entropies and values of a policy on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from torch import Tensor


@dataclass(slots=True, kw_only=True)
class Batch:
    """Steps, [T, B, …]. A policy without memory gets T = 1 and no padding; a sequential one gets whole streams."""

    obs: dict[str, Tensor]
    action: Tensor
    log_prob: Tensor
    """Log-probs under the policy that acted, stored when it acted."""
    value: Tensor
    """The critic's values at that time."""
    advantage: Tensor
    target: Tensor
    """advantage + value: the regression target of the critic."""
    valid: Tensor | None = None
    """Which steps count; None for all."""
    action_mask: Tensor | None = None
    ref_log_prob: Tensor | None = None
    start: Tensor | None = None
    """True where an episode begins; only sequential policies get it."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """[B, …]: the state in which each stream enters: hidden state, or the prompt."""

    @property
    def columns(self) -> int:
        """B: the number of columns that minibatches are drawn from."""
        return self.advantage.shape[1]

    def take(self, columns: Tensor) -> Batch:
        """Return a copy of these columns, in this order."""
        return self.each(lambda x, dim: x.index_select(dim, columns))

    def slice(self, begin: int, end: int) -> Batch:
        """Return the columns begin … end - 1 as views."""
        return self.each(lambda x, dim: x.narrow(dim, begin, end - begin))

    def each(self, choose: Callable[[Tensor, int], Tensor]) -> Batch:
        """Return a batch with `choose(tensor, column axis)` applied to every field."""
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
    """The current policy on a batch, each [T, B].

    `kl` is the divergence to a reference policy where it is known exactly; the loss estimates it by k3 otherwise.
    """

    log_prob: Tensor
    entropy: Tensor
    value: Tensor
    kl: Tensor | None = None
