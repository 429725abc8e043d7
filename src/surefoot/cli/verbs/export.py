"""`surefoot export`: a run's policy as files that other programs load."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.options import CheckpointName, Json, RunName, Runs

if TYPE_CHECKING:
    from surefoot.envs.api import World
    from surefoot.train.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class ExportPolicyArgs:
    """Write a run's policy as ONNX, with a contract, and prove that it answers alike.

        surefoot export walk --to onnx -o walk-onnx/

    model.onnx has the observation statistics, the action mask and the action's bounds inside: raw observations in, the
    action for the env out, with probabilities (or mean and std) and the value beside it. A memory is an input and an
    output. contract.json says names, shapes, ranges, units and hashes, and has worked examples. Nothing is written
    unless onnxruntime gave the policy's answers to 1,000 observations, to 1e-5. Needs "surefoot[onnx]".
    Exit codes: 0 written, 2 it cannot be written, or the answers differ.
    """

    run_name: RunName
    """A run's directory or name, or a directory from model.save(…)."""
    to: Literal["onnx"] = "onnx"
    """Which form."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """The directory to write into (default: onnx/ in the run's)."""
    checkpoint: CheckpointName = "latest"
    masks: Literal["auto", "on", "off"] = "auto"
    """Whether the model takes an action_mask; auto: if the env shows one."""
    env: str | None = None
    """The module:function or library the run was trained on, to prove the model on its observations too."""
    as_json: Json = False
    """Print the contract."""
    runs: Runs = None

    def run(self) -> int:
        from surefoot.train.assemble import read_model
        from surefoot.train.device import pin_threads
        from surefoot.train.interop.onnx_export import export_onnx, policy_of
        from surefoot.train.rundir.open_run import checkpoint_path, find_model

        pin_threads()
        source = find_model(self.run_name, self.runs)
        root = source / "checkpoints" if (source / "run.json").is_file() else source
        saved = read_model(
            source if self.checkpoint == "latest" else checkpoint_path(root, self.checkpoint, source.name)
        )
        world = _world(saved.spec, self.env)
        out = self.out or (
            source / "onnx" if (source / "run.json").is_file() else source.with_name(f"{source.name}-onnx")
        )
        masks = {"auto": None, "on": True, "off": False}[self.masks]
        origin = {"run": source.name, "updates": int(saved.parts["learner"]["updates"])}
        try:
            done = export_onnx(policy_of(saved), out, origin=origin, env=saved.spec.env, world=world, masks=masks)
        finally:
            if world is not None:
                world.close()
        print(json.dumps(done.contract) if self.as_json else "\n".join(lines(done.directory, done.contract)))
        return 0


def lines(directory: Path, contract: dict[str, Any]) -> list[str]:
    """What a person wants to know of an export."""
    proof, ports = contract["proof"], {key: contract[key] for key in ("inputs", "outputs")}
    worst = max(proof["largest_difference"].values())

    def told(port: dict[str, Any]) -> str:
        return f"{port['name']} {port['dtype']}[{', '.join(map(str, port['shape']))}]"

    return [
        f"→ {directory / 'model.onnx'} ({contract['model']['bytes']:,} bytes) and contract.json",
        f"  in   {'  '.join(told(port) for port in ports['inputs'])}",
        f"  out  {'  '.join(told(port) for port in ports['outputs'])}",
        f"  {proof['runtime']} gave the policy's answers to {proof['observations']:,} observations "
        f"({proof['shown_by_the_world']:,} of them from the env), off by {worst:.1e} at most",
    ]


def _world(spec: RunSpec, env: str | None) -> World | None:
    """Some streams of the run's env, if it can be had: a contract can be proven without."""
    from surefoot.envs.ids import is_code
    from surefoot.errors import SurefootError
    from surefoot.train.interop.onnx_check import STREAMS
    from surefoot.train.worlds import env_maker

    if env is None and is_code(spec.env):
        return None
    try:
        return env_maker(env or spec.env, backend=spec.backend, env_kwargs=spec.env_kwargs or None)(STREAMS)
    except SurefootError:
        if env is not None:
            raise
        return None
