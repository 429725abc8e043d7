"""Structs of request and response bodies, the source of OpenAPI, the TypeScript types and the docs. Imports no torch."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Name = Annotated[
    str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$(?!\n)", description="Lower-case letters, digits, - and _.")
]
Id = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$(?!\n)")]
Word = Annotated[str, Meta(min_length=1, max_length=200)]
Description = Annotated[str, Meta(min_length=1, max_length=4000)]
Text = Annotated[str, Meta(max_length=100_000)]
Finite = Annotated[float, Meta(ge=-1e9, le=1e9)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]
Numbers = Annotated[bytes, Meta(max_length=4 * 65_536)]
Pixels = Annotated[bytes, Meta(max_length=4 << 20)]
Mode = Literal["live", "shadow", "apprentice"]
Aggregation = Literal["first", "sum", "last"]

# Limits of one request; they bound its time and memory.
MOST_ACTIONS = 1000
MOST_CANDIDATES = 256
LARGEST = 65_536
"""Largest embedding, in numbers."""
BATCH = 1000
"""Most decisions or rewards in one request."""


def wire_name(name: str) -> str:
    """Return the name that a struct has on the wire: `DecisionResponse` is `Decision` there."""
    return name.removesuffix("Body").removesuffix("Response")


class _Body(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of all bodies. Unknown fields are errors, so that a misspelt one is not ignored."""


class TrainingBody(_Body):
    """Automatic learning of a policy."""

    automatic: bool = True
    """True: learn from every outcome as it comes. False: learn only on request."""
    every: Annotated[int, Meta(ge=1, le=1_000_000)] = 128
    """Outcomes between two saved versions; after 1,280 outcomes a tenth of them, at most 5,000."""
    least: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """Minimum number of outcomes since the last version for an update on request."""
    client_share: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.2
    """Largest share of the outcomes that one client's rewards are learned from, if there are several clients; an even share
    with fewer than five."""
    settings: dict[str, float] = {}
    """Settings of the learner: sharpness, floor, lr, decay, minibatch_size, log, forget, surprise."""


class NewPolicy(_Body):
    """A policy to create: its input and its choices."""

    name: Name
    choose: Literal["actions", "candidates"] = "actions"
    """actions: from a fixed list. candidates: from those sent with each decision, by their descriptions."""
    actions: Annotated[list[Word], Meta(max_length=MOST_ACTIONS)] = []
    """Names of the actions, in the order of their numbers; at least two. Empty for candidates."""
    descriptions: dict[Word, Description] = {}
    """{action: what it is for}; requires an encoder. Before anything is learned, the nearest description is likeliest."""
    description_embeddings: dict[Word, list[Finite]] = {}
    """{action: embedding of its description}, for a policy without an encoder. Not part of responses."""
    prior: Annotated[float, Meta(ge=0.0, le=10.0)] = 1.0
    """How much descriptions count before anything is learned, as a multiple of the usual; 0: nothing."""
    embedding_size: Annotated[int, Meta(ge=1, le=LARGEST)] = 384
    """Size of the input embedding."""
    feature_size: Annotated[int, Meta(ge=0, le=4096)] = 0
    """Numbers that a decision's `features` are hashed into; 0: it has none. 64 are enough for about twenty features."""
    encoder: Literal["none", "hashing"] = "none"
    """Encoder of a decision's `text`; none: the caller sends embeddings."""
    reward_range: tuple[Finite, Finite] = (0.0, 1.0)
    """Rewards outside of this range are refused."""
    wait_seconds: Annotated[float, Meta(gt=0.0, le=604_800.0)] = 600.0
    """Seconds that a decision waits for its reward."""
    default_reward: Finite = 0.0
    """Reward of a decision that received none in time."""
    aggregation: Aggregation = "first"
    """How several rewards of a decision are combined: the first, their sum, or the last before learning."""
    abstain_below: Share | None = None
    """Answer "none of these" where the expected success rate of the choice is below this; 0 never does. null: below one half,
    once enough outcomes show that this would have lost almost no successes."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    training: TrainingBody = msgspec.field(default_factory=TrainingBody)


class PolicyResponse(NewPolicy):
    """A policy and its statistics."""

    version: Count = 0
    """The live version."""
    newest: Count = 0
    """The newest version."""
    canary: tuple[int, float] | None = None
    """(version, share of the decisions) of a canary."""
    frozen: bool = False
    """True: it decides, and does not learn."""
    retired: list[Word] = []
    """Actions that are no longer chosen."""
    decisions: Count = 0
    rewards: Count = 0
    mean_reward: float | None = None
    """Mean of the last 1,000 rewards."""
    outcomes: Count = 0
    """Outcomes that it has learned from."""
    calibration_error: float | None = None
    """Mean distance between the expected and the observed success rate; null before the first outcome."""


class PolicyChange(_Body):
    """Changes of a policy; what is omitted stays unchanged."""

    name: Name | UnsetType = UNSET
    """The new name."""
    frozen: bool | UnsetType = UNSET
    """True: decide without learning. Outcomes that arrive meanwhile are stored, and never learned from."""
    add_actions: Annotated[list[Word], Meta(max_length=MOST_ACTIONS)] = []
    """New actions, or retired ones to use again. They get the next numbers; the others keep what they have learned."""
    retire_actions: Annotated[list[Word], Meta(max_length=MOST_ACTIONS)] = []
    """Actions not to choose any more. They keep their numbers."""
    descriptions: dict[Word, Description] = {}
    description_embeddings: dict[Word, list[Finite]] = {}
    abstain_below: Share | UnsetType | None = UNSET


class Deleted(_Body):
    """A policy that was deleted."""

    policy: Name
    decisions: Count
    """Number of its decisions, which were deleted with their rewards."""


class Candidate(_Body):
    """One option; send one of `description`, `embedding` and `embedding_b64`."""

    id: Word
    """Its name in the response."""
    description: Description | UnsetType = UNSET
    """Requires a policy with an encoder."""
    embedding: list[Finite] | UnsetType = UNSET
    embedding_b64: Numbers | UnsetType = UNSET


class NewDecision(_Body):
    """The input of a decision; send one of `embedding`, `embedding_b64` and `text`."""

    decision_id: Id | UnsetType = UNSET
    """Id chosen by the caller, which makes retries idempotent; generated if omitted."""
    embedding: list[Finite] | UnsetType = UNSET
    embedding_b64: Numbers | UnsetType = UNSET
    """The embedding as little-endian float32 in base64: an eighth of the work."""
    text: Text | UnsetType = UNSET
    """Requires a policy with an encoder."""
    features: Annotated[dict[Word, Finite | bool | Word], Meta(max_length=256)] | UnsetType = UNSET
    """Numbers, true or false, and categories by name, beside the embedding or without one; requires `feature_size`."""
    candidates: Annotated[list[Candidate], Meta(min_length=1, max_length=MOST_CANDIDATES)] | UnsetType = UNSET
    """The options; for a policy that chooses among candidates."""
    mask: list[bool] | UnsetType = UNSET
    """True: allowed. Default: all."""
    episode: Id | UnsetType = UNSET
    """Groups consecutive decisions into an episode; if omitted, each decision is one episode."""
    mode: Mode = "live"
    """shadow: decide without learning. apprentice: learn from `action`, taken by the caller."""
    action: Count | UnsetType = UNSET
    """apprentice: number of the action that was taken."""
    deterministic: bool = False
    """Choose the most probable action; it is logged, but not learned from."""
    defer: bool = False
    """True: the decision counts and its time starts only after /activate."""
    distribution: bool = False
    """Include the probability of every action in the response."""
    subject: Id | UnsetType = UNSET
    """The person it is about, so that all of their data can be deleted."""


class DecisionResponse(_Body):
    """The chosen action, with probability and policy version."""

    decision_id: Id
    policy: Name
    action: Count | None
    """Index into the policy's actions or the candidates that were sent; null: none of these."""
    name: Word | None
    """The action's name, or the candidate's id; null: none of these."""
    probability: Share
    """Probability with which it was drawn."""
    policy_version: Count
    """The newest saved version of the policy that decided; it learns on between two versions."""
    expires_at: float
    """Unix time after which a reward is refused."""
    confidence: Share = 0.0
    """Expected success rate, calibrated on past outcomes."""
    abstained: bool = False
    """True: none of the choices is expected to succeed often enough (`abstain_below`). Nothing was chosen."""
    mode: Mode = "live"
    distribution: list[Share] | UnsetType = UNSET


class DecisionsBody(_Body):
    """Many decisions in one request."""

    decisions: Annotated[list[NewDecision], Meta(min_length=1, max_length=BATCH)]


class DecisionList(_Body):
    """Decisions in the order of the request."""

    decisions: list[DecisionResponse]


class _Filter(_Body):
    before: Count | UnsetType = UNSET
    """Only decisions with a smaller `number`: the `before` of the last page."""
    name: Word | UnsetType = UNSET
    """Only this action or candidate."""
    version: Count | UnsetType = UNSET
    since: float | UnsetType = UNSET
    """Unix time of the first one."""
    until: float | UnsetType = UNSET
    rewarded: bool | UnsetType = UNSET
    """true: only decisions with a reward; false: only those without."""
    abstained: bool | UnsetType = UNSET


class DecisionQuery(_Filter):
    """Which decisions to list."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class ExportQuery(_Filter):
    """Which decisions to export."""

    limit: Annotated[int, Meta(ge=1, le=100_000)] = 100_000


class LoggedDecision(_Body):
    """A past decision and its reward."""

    number: Count
    """Grows with every decision."""
    time: float
    decision_id: Id
    name: Word | None
    """The action or candidate; null: none of these."""
    probability: Share
    confidence: Share
    abstained: bool
    mode: Mode
    policy_version: Count
    reward: float | None = None
    """The reward that was reported; null without one."""


class DecisionLog(_Body):
    """Past decisions, newest first."""

    decisions: list[LoggedDecision]
    before: Count | None = None
    """Where the next page begins; null if this is the last."""


class ActionStatistics(_Body):
    """Outcomes of one action."""

    name: Word
    outcomes: Count
    share: Share
    reward: float
    """Mean reward."""
    low: float | None
    """Lower end of its 95 % interval; null with one outcome."""
    high: float | None


class CalibrationBin(_Body):
    """Decisions with a similar expected success rate."""

    expected: Share
    observed: Share
    weight: float
    """Number of outcomes; older ones count less."""


class PolicyStatistics(_Body):
    """Actions and calibration of a policy over its last outcomes, at most 20,000."""

    policy: Name
    outcomes: Count
    actions: list[ActionStatistics]
    """The most frequent 100."""
    calibration: list[CalibrationBin]


class NewReward(_Body):
    """The outcome of a decision."""

    reward_id: Id | UnsetType = UNSET
    """Id chosen by the caller: with aggregation `sum`, a repeated id is not added twice."""

    value: Finite | UnsetType = UNSET
    parts: dict[Word, Finite] | UnsetType = UNSET
    """Named parts; their sum is the value if `value` is omitted."""
    terminated: bool = True
    """The episode has ended. False: another decision of the same episode follows."""
    truncated: bool = False
    """The episode was truncated: its remaining value is estimated by the critic."""


class RewardResponse(_Body):
    """The reward that counts for the decision."""

    decision_id: Id
    value: float
    status: Literal["stored", "replayed", "added", "ignored"]
    """replayed: the same reward was sent before. ignored: another reward counts already."""


class NewJob(_Body):
    """A learning job."""

    least: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    """Minimum number of outcomes since the last version; default: `training.least` of the policy."""


class JobResponse(_Body):
    """State of a background job."""

    job_id: Id
    policy: Name
    kind: Literal["update", "evaluation"]
    state: Literal["waiting", "running", "done", "failed"]
    message: str = ""
    result: dict[str, Any] = {}


class PastResponse(_Body):
    """A similar past decision and its reward."""

    decision_id: Id
    name: Word
    """The action or candidate that was chosen."""
    reward: float
    likeness: float
    """Cosine of the two inputs."""


class Explained(_Body):
    """Explanation of a decision."""

    decision: DecisionResponse
    distribution: list[Share]
    names: list[str]
    """The choices, in the order of `distribution`."""
    prior: Share
    """Expected success of the choice by its description alone."""
    learned: float
    """Change of its expected success by past outcomes."""
    exploration: Share
    """Total probability of all actions but the most probable one."""
    reward: float | None = None
    """The decision's reward, if it has one."""
    nearest: list[PastResponse] = []


class NewCheckpoint(_Body):
    """The version to name; default: the live one."""

    version: Count | UnsetType = UNSET
    name: Id | UnsetType = UNSET
    """The checkpoint's id; default: `<policy>-<version>`."""


class CheckpointResponse(_Body):
    """A permanently named version."""

    checkpoint_id: Id
    policy: Name
    version: Count
    created_at: float


class Version(_Body):
    """A version of the policy's weights."""

    version: Count
    created_at: float
    samples: Count = 0
    live: bool = False
    metrics: dict[str, float | None] = {}


class VersionList(_Body):
    """Versions, newest first."""

    versions: list[Version]


class PromotionBody(_Body):
    """The version to make live."""

    version: Count
    share: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0
    """Below 1 the version is a canary for that share of the decisions."""
    gate: bool = False
    """True: only if it is not worse than the live version on the log."""


class NewEvaluation(_Body):
    """Off-policy evaluation of a version."""

    version: Count
    last: Annotated[int, Meta(ge=10, le=100_000)] = 10_000
    """Number of logged decisions to evaluate on."""


class EstimateResponse(_Body):
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float


class OffPolicy(_Body):
    """Off-policy estimates of a version's mean reward."""

    version: Count
    logged: EstimateResponse
    """Mean reward of the logged decisions."""
    ips: EstimateResponse
    snips: EstimateResponse
    dr: EstimateResponse
    effective_sample_size: float
    decisions: Count
    enough: bool
    """True if the effective sample size is at least 500."""


class PartResponse(_Body):
    """One part of an observation."""

    shape: list[int]
    dtype: str


class RunResponse(_Body):
    """A trained policy, served without learning."""

    name: str
    env: str
    steps: Count
    """Environment steps of its training."""
    observation: dict[str, PartResponse]
    """Its observation by part; a single part is called `obs`."""
    action: dict[str, Any]
    """Its action space, such as {"kind": "discrete", "n": 2, "start": 0}."""
    memory: bool
    """True: the policy is recurrent, and every request must name its `episode`."""


class NewAct(_Body):
    """A flattened observation: `observation` or `observation_b64`, or named `parts` and `parts_b64`."""

    observation: list[Finite] | UnsetType = UNSET
    observation_b64: Pixels | UnsetType = UNSET
    """The observation as little-endian float32 in base64."""
    parts: dict[str, list[Finite]] | UnsetType = UNSET
    parts_b64: dict[str, Pixels] | UnsetType = UNSET
    mask: list[bool] | UnsetType = UNSET
    """True: allowed; for discrete actions only."""
    deterministic: bool = True
    """False: sample the action, as in training."""
    episode: Id | UnsetType = UNSET
    """The episode whose recurrent state is continued; for recurrent policies."""
    start: bool = False
    """True: start the episode anew, with an empty recurrent state."""


class Act(_Body):
    """An action."""

    action: int | float | list[Any] | dict[str, Any]
    """In the form that the environment takes."""
    began: bool
    """True: there was no recurrent state, so this was the first step of an episode."""


class Acts(_Body):
    """Many observations in one request."""

    acts: Annotated[list[NewAct], Meta(min_length=1, max_length=BATCH)]


class ActList(_Body):
    """Actions in the order of the request."""

    acts: list[Act]


class Chances(_Body):
    """Probabilities of all choices; no decision was made."""

    policy: Name
    policy_version: Count
    distribution: list[Share]
    names: list[str]
    """Names of the actions or candidates, in the same order."""


class Health(_Body):
    """State of the service."""

    status: Literal["ok", "draining"]


class ProblemResponse(_Body):
    """An error, as RFC 9457 problem."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    pointer: str | UnsetType = UNSET
    """JSON pointer to the invalid part of the body."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return the struct for its former name (`Decision` for `DecisionResponse`), for one release."""
        for suffix in ("Body", "Response"):
            if (struct := globals().get(name + suffix)) is not None:
                warnings.warn(f"schema.{name} is now schema.{name}{suffix}", DeprecationWarning, stacklevel=2)
                return struct
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
