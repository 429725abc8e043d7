"""Policies as a whole: create, describe, change, delete."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError
from surefoot.server import schema
from surefoot.server.decisions.recovery import policy_entry
from surefoot.server.decisions.served_policy import MOST_WEIGHTS, ServedPolicy, make_policy
from surefoot.server.decisions.service import Service
from surefoot.server.decisions.snapshots import snapshot
from surefoot.server.http.problems import Refused


async def create(service: Service, new: schema.NewPolicy) -> schema.PolicyResponse:
    """Create a policy; its first version is untrained. The same request again returns the same policy."""
    _check(new)
    known = service.policies.get(new.name)
    if known is not None:
        if msgspec.json.encode(known.config) == msgspec.json.encode(new):
            return describe(known)
        raise Refused("conflict", f"there is a policy {new.name!r} of another kind already")
    key, taken = new.name, {*service.keys, *service.leaving}
    while key in taken:
        # A policy that had this name was renamed, or is being deleted.
        key = f"{new.name}-{len(taken)}-{len(key)}"
    versions = Versions(service.directory / "policies" / key)
    try:
        serving = make_policy(key, new, versions)
    except ConfigError as why:
        raise Refused("invalid", str(why), pointer="/training/settings") from why
    service.keys[key] = serving
    try:
        # Before the policy: a stored policy always has a version.
        await asyncio.get_running_loop().run_in_executor(service.workers, versions.save, 0, snapshot(serving))
        await service.store.write(policy_entry(serving))
    except BaseException:
        del service.keys[key]
        raise
    service.serve(serving)
    return describe(serving)


def _check(new: schema.NewPolicy) -> None:
    low, high = new.reward_range
    if not low < high or not low <= new.default_reward <= high:
        raise Refused("invalid", "reward_range is [low, high] and default_reward lies in it", pointer="/reward_range")
    if new.choose == "actions" and len(new.actions) < 2:
        raise Refused("invalid", 'name two actions at least, or let it choose "candidates"', pointer="/actions")
    if new.choose == "candidates" and new.actions:
        raise Refused("invalid", "decisions bring the candidates: name no actions", pointer="/actions")
    if len(set(new.actions)) != len(new.actions):
        raise Refused("invalid", "two actions have the same name", pointer="/actions")
    if new.encoder != "none" and new.embedding_size < 8:
        raise Refused("invalid", "an encoder makes at least 8 numbers", pointer="/embedding_size")
    size = new.embedding_size + new.feature_size
    if len(new.actions) * size > MOST_WEIGHTS:
        detail = f"{len(new.actions)} actions of {size} numbers; {MOST_WEIGHTS:,} numbers are the most"
        raise Refused("invalid", detail, pointer="/embedding_size")
    _check_descriptions(new, new.actions, new.descriptions, new.description_embeddings)


def _check_descriptions(
    config: schema.NewPolicy,
    actions: Sequence[str],
    texts: Mapping[str, str],
    embeddings: Mapping[str, Sequence[float]],
) -> None:
    for field, named in (("descriptions", texts), ("description_embeddings", embeddings)):
        for name in named:
            if name not in actions:
                raise Refused("invalid", f"there is no action {name[:80]!r}", pointer=f"/{field}")
    if texts and config.encoder == "none":
        detail = "this policy has no encoder; send description_embeddings"
        raise Refused("invalid", detail, pointer="/descriptions")
    for name, embedding in embeddings.items():
        if len(embedding) != config.embedding_size:
            detail = f"the embedding of {name[:80]!r} has {len(embedding)} numbers; this policy expects "
            raise Refused("invalid", f"{detail}{config.embedding_size}", pointer="/description_embeddings")


def describe(serving: ServedPolicy) -> schema.PolicyResponse:
    """Return a policy's settings and statistics."""
    config = serving.config
    settings: dict[str, Any] = {name: getattr(config, name) for name in config.__struct_fields__}
    settings |= {"description_embeddings": {}}
    error = serving.agent.calibration.error()
    return schema.PolicyResponse(
        **settings,
        version=serving.version,
        newest=serving.newest,
        canary=None if serving.canary is None else serving.canary[:2],
        frozen=serving.frozen,
        retired=list(serving.retired),
        decisions=serving.decision_count,
        rewards=serving.rewarded,
        mean_reward=float(np.mean(serving.recent)) if serving.recent else None,
        outcomes=serving.learner.outcomes,
        calibration_error=None if np.isnan(error) else error,
    )


async def change(service: Service, name: str, new: schema.PolicyChange) -> schema.PolicyResponse:
    """Rename or freeze a policy; add, describe or retire actions. What was learned stays."""
    serving = service.policy(name)
    config, retired = serving.config, list(serving.retired)
    if new.name is not UNSET and new.name != name and new.name in service.policies:
        raise Refused("conflict", f"there is a policy {new.name!r} already", pointer="/name")
    touched = new.add_actions or new.retire_actions or new.descriptions or new.description_embeddings
    if touched and config.choose == "candidates":
        raise Refused("invalid", "decisions bring the candidates: there are no actions to change", pointer="/")
    for field, names in (("add_actions", new.add_actions), ("retire_actions", new.retire_actions)):
        if len(set(names)) != len(names):
            raise Refused("invalid", "an action is named twice", pointer=f"/{field}")
    for action in new.retire_actions:
        if action not in config.actions or action in retired:
            raise Refused("invalid", f"there is no action {action[:80]!r} to retire", pointer="/retire_actions")
    for action in new.add_actions:
        if action in config.actions and action not in retired:
            raise Refused("conflict", f"there is an action {action[:80]!r} already", pointer="/add_actions")
    actions = [*config.actions, *(action for action in new.add_actions if action not in config.actions)]
    retired = [action for action in [*retired, *new.retire_actions] if action not in new.add_actions]
    if config.choose == "actions" and len(actions) - len(retired) < 2:
        raise Refused("invalid", "at least two actions must remain", pointer="/retire_actions")
    if len(actions) > schema.MOST_ACTIONS:
        raise Refused("invalid", f"{schema.MOST_ACTIONS} actions are the most", pointer="/add_actions")
    _check_descriptions(config, actions, new.descriptions, new.description_embeddings)
    changed = msgspec.structs.replace(
        config,
        name=name if new.name is UNSET else new.name,
        actions=actions,
        descriptions={**config.descriptions, **new.descriptions},
        description_embeddings={**config.description_embeddings, **new.description_embeddings},
        abstain_below=config.abstain_below if new.abstain_below is UNSET else new.abstain_below,
    )
    frozen = serving.frozen if new.frozen is UNSET else new.frozen
    before = serving.config, serving.frozen, serving.retired
    serving.config, serving.frozen, serving.retired = changed, frozen, retired
    try:
        await service.store.write(policy_entry(serving))
    except BaseException:
        serving.config, serving.frozen, serving.retired = before
        raise
    serving.reconfigure()
    if changed.name != name:
        del service.policies[name]
        service.policies[changed.name] = serving
    return describe(serving)


async def delete(service: Service, name: str) -> schema.Deleted:
    """Delete a policy with its versions, decisions and rewards."""
    serving = service.policy(name)
    decisions = serving.decision_count
    service.unserve(serving)
    await service.erase(serving.key)
    await asyncio.get_running_loop().run_in_executor(
        service.workers, lambda: shutil.rmtree(serving.versions.root, ignore_errors=True)
    )
    return schema.Deleted(policy=name, decisions=decisions)
