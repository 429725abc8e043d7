"""What goes over the wire: one struct a body. OpenAPI, the TypeScript types and the docs are made from these. No torch."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$(?!\n)", description="Small letters, digits, - and _.")]
Id = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$(?!\n)")]
Word = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=100_000)]
Finite = Annotated[float, Meta(ge=-1e9, le=1e9)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]
Numbers = Annotated[bytes, Meta(max_length=4 * 65_536)]
Pixels = Annotated[bytes, Meta(max_length=4 << 20)]
Mode = Literal["live", "shadow", "apprentice"]
Aggregation = Literal["first", "sum", "last"]

MOST_ACTIONS = 1000
MOST_CANDIDATES = 256
LARGEST = 65_536
"""Numbers of an embedding."""
BATCH = 1000
"""Decisions or rewards of one request."""


def wire_name(name: str) -> str:
    """Return the name that a struct has on the wire: `DecisionResponse` is `Decision` there."""
    return name.removesuffix("Body").removesuffix("Response")


class _Body(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A field that nobody knows is an error: a misspelt one must not be passed over."""


class TrainingBody(_Body):
    """When a policy learns by itself."""

    automatic: bool = True
    """False: only when it is told to."""
    every: Annotated[int, Meta(ge=1)] = 128
    """Finished decisions that make an update due."""
    least: Annotated[int, Meta(ge=1)] = 64
    """Finished decisions without which there is no update."""
    client_share: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.2
    """The most of an update that the rewards of one client make up, where there are several: of fewer than five an even share."""
    settings: dict[str, Any] = {}
    """Settings of PPO, as `surefoot knobs` lists them."""


class NewPolicy(_Body):
    """A policy to be made: what it sees and what it may choose."""

    name: Name
    choose: Literal["actions", "candidates"] = "actions"
    """actions: from the same ones each time. candidates: from those that a decision brings, by their descriptions."""
    actions: Annotated[list[Word], Meta(max_length=MOST_ACTIONS)] = []
    """What it chooses from, in the order of their numbers: two at least. None where decisions bring candidates."""
    prior: Annotated[float, Meta(ge=0.0, le=100.0)] = 5.0
    """candidates: what the cosine of a description and what is seen counts before anything was learned; 0 = nothing."""
    embedding_size: Annotated[int, Meta(ge=1, le=LARGEST)] = 384
    """Numbers it sees."""
    encoder: Literal["none", "hashing"] = "none"
    """What turns a decision's `text` into that many numbers; none: embeddings come from the caller."""
    reward_range: tuple[Finite, Finite] = (-1.0, 1.0)
    """Rewards outside of it are refused."""
    wait_seconds: Annotated[float, Meta(gt=0.0, le=604_800.0)] = 600.0
    """How long a decision waits for its reward."""
    default_reward: Finite = 0.0
    """What a decision without one gets."""
    aggregation: Aggregation = "first"
    """What several rewards of a decision make: the first, their sum, or the last before it is learned from."""
    seed: Count = 0
    training: TrainingBody = msgspec.field(default_factory=TrainingBody)


class PolicyResponse(NewPolicy):
    """A policy and how it is doing."""

    version: Count = 0
    """The one that answers now."""
    newest: Count = 0
    """The last one that was learned."""
    canary: tuple[int, float] | None = None
    """(version, share of the decisions it answers) while one is tried out."""
    decisions: Count = 0
    rewards: Count = 0
    mean_reward: float | None = None
    """Of the last thousand."""


class Candidate(_Body):
    """One thing to choose; give one of `description`, `embedding` and `embedding_b64`."""

    id: Word
    """What it is called in the answer."""
    description: Annotated[str, Meta(min_length=1, max_length=4000)] | UnsetType = UNSET
    """For a policy with an encoder."""
    embedding: list[Finite] | UnsetType = UNSET
    embedding_b64: Numbers | UnsetType = UNSET


class NewDecision(_Body):
    """What is seen; give one of `embedding`, `embedding_b64` and `text`."""

    decision_id: Id | UnsetType = UNSET
    """Yours, so that a retry is the same decision; made here if left out."""
    embedding: list[Finite] | UnsetType = UNSET
    embedding_b64: Numbers | UnsetType = UNSET
    """The same as little-endian float32, base64: an eighth of the work."""
    text: Text | UnsetType = UNSET
    """For a policy with an encoder."""
    candidates: Annotated[list[Candidate], Meta(min_length=1, max_length=MOST_CANDIDATES)] | UnsetType = UNSET
    """What there is to choose from this time; for a policy that chooses candidates."""
    mask: list[bool] | UnsetType = UNSET
    """True = allowed; all are, if left out."""
    episode: Id | UnsetType = UNSET
    """Decisions of one episode follow each other; each is its own, if left out."""
    mode: Mode = "live"
    """shadow: decide, do not count. apprentice: learn from `action`, which the caller took."""
    action: Count | UnsetType = UNSET
    """apprentice: what was done."""
    deterministic: bool = False
    """The most likely action, without chance; it is answered and logged, and not learned from."""
    defer: bool = False
    """True: waits for /activate before its time runs and it is learned from."""
    distribution: bool = False
    """Answer with every action's probability."""
    subject: Id | UnsetType = UNSET
    """Whom it is about, so that all of it can be deleted."""


class DecisionResponse(_Body):
    """What was chosen, and all that is needed to make sense of it later."""

    decision_id: Id
    policy: Name
    action: Count
    """Its number: of the policy's actions, or of the candidates as they were sent."""
    name: Word
    """The action's name, or the candidate's id."""
    probability: Share
    policy_version: Count
    expires_at: float
    """Unix time after which a reward comes too late."""
    mode: Mode = "live"
    distribution: list[Share] | UnsetType = UNSET


class DecisionsBody(_Body):
    """Many at a time."""

    decisions: Annotated[list[NewDecision], Meta(min_length=1, max_length=BATCH)]


class DecisionList(_Body):
    """In the order they were asked for."""

    decisions: list[DecisionResponse]


class NewReward(_Body):
    """What came of a decision."""

    reward_id: Id | UnsetType = UNSET
    """Yours, where several rewards add up: told again under the same id, it is not added twice."""

    value: Finite | UnsetType = UNSET
    parts: dict[Word, Finite] | UnsetType = UNSET
    """Named parts, whose sum is the value where `value` is left out."""
    terminated: bool = True
    """The episode is over. False: another decision of the same episode follows."""
    truncated: bool = False
    """The episode was cut short: what lay ahead is taken from the critic."""


class RewardResponse(_Body):
    """The reward as it counts."""

    decision_id: Id
    value: float
    status: Literal["stored", "replayed", "added", "ignored"]
    """replayed: the same was told before; ignored: another one counts already."""


class NewJob(_Body):
    """Learn now."""

    least: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class JobResponse(_Body):
    """Something that takes a while."""

    job_id: Id
    policy: Name
    kind: Literal["update", "evaluation"]
    state: Literal["waiting", "running", "done", "failed"]
    message: str = ""
    result: dict[str, Any] = {}


class PastResponse(_Body):
    """A decision that saw something alike, and what came of it."""

    decision_id: Id
    action: Count
    reward: float
    likeness: float
    """Cosine of what both saw."""


class Explained(_Body):
    """Why it was chosen."""

    decision: DecisionResponse
    distribution: list[Share]
    prior: Share
    """What the untrained first version would have given the action."""
    learned: float
    """What learning added to its log-probability."""
    exploration: Share
    """Probability of everything but the likeliest action: how much was left to chance."""
    reward: float | None = None
    """What it was closed with."""
    nearest: list[PastResponse] = []


class NewCheckpoint(_Body):
    """Which version to name; the one that answers, if left out."""

    version: Count | UnsetType = UNSET


class CheckpointResponse(_Body):
    """A version under a name that stays."""

    checkpoint_id: Id
    policy: Name
    version: Count
    created_at: float


class Version(_Body):
    """Weights that were learned."""

    version: Count
    created_at: float
    samples: Count = 0
    live: bool = False
    metrics: dict[str, float | None] = {}


class VersionList(_Body):
    """Newest first."""

    versions: list[Version]


class PromotionBody(_Body):
    """Which version answers from now on."""

    version: Count
    share: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0
    """Below 1 it is a canary: it answers that share of the decisions."""
    gate: bool = False
    """True: only if the log says that it is not worse."""


class NewEvaluation(_Body):
    """What would another version have earned?"""

    version: Count
    last: Annotated[int, Meta(ge=10, le=100_000)] = 10_000
    """Logged decisions to look at."""


class EstimateResponse(_Body):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


class OffPolicy(_Body):
    """What the log says a version is worth."""

    version: Count
    logged: EstimateResponse
    """What was really earned."""
    ips: EstimateResponse
    snips: EstimateResponse
    dr: EstimateResponse
    effective_sample_size: float
    decisions: Count
    enough: bool
    """Below an effective sample size of 500 there is no verdict."""


class PartResponse(_Body):
    """One part of an observation."""

    shape: list[int]
    dtype: str


class RunResponse(_Body):
    """A trained policy that is served as it is."""

    name: str
    env: str
    steps: Count
    """Env steps it was trained for."""
    observation: dict[str, PartResponse]
    """What it sees; one part called obs where the env's observation has no names."""
    action: dict[str, Any]
    """What it answers with: a kind and its size, such as {"kind": "discrete", "n": 2, "start": 0}."""
    memory: bool
    """True: it remembers within an episode, so that every step says which `episode` it is in."""


class NewAct(_Body):
    """What is seen, laid flat: `observation` or `observation_b64`, or its named `parts` and `parts_b64`."""

    observation: list[Finite] | UnsetType = UNSET
    observation_b64: Pixels | UnsetType = UNSET
    """The same as little-endian float32, base64."""
    parts: dict[str, list[Finite]] | UnsetType = UNSET
    parts_b64: dict[str, Pixels] | UnsetType = UNSET
    mask: list[bool] | UnsetType = UNSET
    """True = allowed; for choices only."""
    deterministic: bool = True
    """False: sampled, as in training."""
    episode: Id | UnsetType = UNSET
    """Whose memory it goes on with; for a policy that has one."""
    start: bool = False
    """True: an episode begins here, whatever is remembered under its id."""


class Act(_Body):
    """What to do."""

    action: int | float | list[Any] | dict[str, Any]
    """As the env takes it."""
    began: bool
    """Nothing was remembered: it was taken for the first step of an episode."""


class Acts(_Body):
    """Many at a time."""

    acts: Annotated[list[NewAct], Meta(min_length=1, max_length=BATCH)]


class ActList(_Body):
    """In the order they were asked for."""

    acts: list[Act]


class Chances(_Body):
    """What would be chosen how often; nothing was decided."""

    policy: Name
    policy_version: Count
    distribution: list[Share]
    names: list[str]
    """Of the actions or candidates, in the same order."""


class Health(_Body):
    """Whether it lives."""

    status: Literal["ok", "draining"]


class ProblemResponse(_Body):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    pointer: str | UnsetType = UNSET
    """Where in the body, as a JSON pointer."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return the struct for its former name (`Decision` for `DecisionResponse`), for one release."""
        for suffix in ("Body", "Response"):
            if (struct := globals().get(name + suffix)) is not None:
                warnings.warn(f"schema.{name} is now schema.{name}{suffix}", DeprecationWarning, stacklevel=2)
                return struct
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
