"""`surefoot export`: write a run's policy as files that other programs load."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from surefoot.cli.options import CheckpointName, CodeEnv, RunName

if TYPE_CHECKING:
    from surefoot.envs.api import World
    from surefoot.train.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class ExportPolicyArgs:
    """Export a run's policy to ONNX or C and verify that it gives the same answers.

        surefoot export walk --to onnx -o walk-onnx/
        surefoot export walk --to c -o walk.h
        surefoot export walk-onnx/ --check

    The exported policy contains the observation statistics, the action mask and the bounds of actions: it takes raw
    observations and returns the action for the environment, the probabilities (or mean and std) and the value. The state
    of a recurrent policy is an input and an output. Files are written only if they reproduce the policy's answers to
    1,000 observations within 1e-5.
    onnx: model.onnx, and contract.json with names, shapes, ranges, units, hashes and examples. Needs "surefoot[onnx]".
    c: one C99 header without dependencies, with a self-test. Needs a C compiler, and a policy without images.
    --check reads an ONNX export back: hash, inputs, outputs and examples of the contract are compared with the model.
    Exit codes: 0 written or as in its contract, 2 it cannot be exported, or the answers differ.
    """

    run_name: RunName
    """The directory or name of a run, or a directory written by model.save(…)."""
    to: Literal["onnx", "c", "check"] = "onnx"
    """Format of the export; check (or --check): RUN is an ONNX export, which is compared with its contract."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Directory to write to, or header file (default: onnx/ or policy.h in the run's directory)."""
    checkpoint: CheckpointName = "latest"
    masks: Literal["auto", "on", "off"] = "auto"
    """Whether the exported policy takes an action_mask; auto: if the environment provides one."""
    env: CodeEnv = None
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        return self._check() if self.to == "check" else self._export()

    def _check(self) -> int:
        from surefoot.train.interop.contract_check import check_contract

        directory = Path(self.run_name)
        checked = check_contract(directory)
        model = checked.contract.model
        if self.as_json:
            print(
                json.dumps(
                    {"model": model.file, "sha256": model.sha256, "examples": checked.examples, "worst": checked.worst}
                )
            )
            return 0
        print(f"{directory / model.file} is the model of its contract: {model.bytes:,} bytes, SHA-256 {model.sha256}")
        print(f"  {checked.runtime} reproduced {checked.examples} examples within {checked.worst:.1e}")
        return 0

    def _export(self) -> int:
        from surefoot.train.assemble import read_model
        from surefoot.train.device import pin_threads
        from surefoot.train.interop.c_export import export_c
        from surefoot.train.interop.onnx_export import export_onnx, policy_of
        from surefoot.train.rundir.open_run import checkpoint_path, find_model

        pin_threads()
        source = find_model(self.run_name, None)
        root = source / "checkpoints" if (source / "run.json").is_file() else source
        saved = read_model(
            source if self.checkpoint == "latest" else checkpoint_path(root, self.checkpoint, source.name)
        )
        world = _world(saved.spec, self.env)
        name, export = ("onnx", export_onnx) if self.to == "onnx" else ("policy.h", export_c)
        out = self.out or (
            source / name if (source / "run.json").is_file() else source.with_name(f"{source.name}-{name}")
        )
        masks = {"auto": None, "on": True, "off": False}[self.masks]
        origin = {"run": source.name, "updates": int(saved.parts["learner"]["updates"])}
        try:
            result = export(policy_of(saved), out, origin=origin, env=saved.spec.env, world=world, masks=masks)
        finally:
            if world is not None:
                world.close()
        print(json.dumps(result.contract) if self.as_json else "\n".join(lines(result.directory, result.contract)))
        return 0


def lines(directory: Path, contract: dict[str, Any]) -> list[str]:
    """Return the summary of an export: the files, the inputs and outputs, the largest difference."""
    proof, ports = contract["proof"], {key: contract[key] for key in ("inputs", "outputs")}
    worst = max(proof["largest_difference"].values())

    def text(port: dict[str, Any]) -> str:
        shape = f"[{', '.join(map(str, port['shape']))}]" if port["shape"] else ""
        return f"{port['name']} {port['dtype']}{shape}"

    model = contract["model"]
    beside = " and contract.json" if model["file"] == "model.onnx" else ""
    return [
        f"→ {directory / model['file']} ({model['bytes']:,} bytes){beside}",
        f"  in   {'  '.join(text(port) for port in ports['inputs'])}",
        f"  out  {'  '.join(text(port) for port in ports['outputs'])}",
        f"  {proof['runtime']} reproduced the policy's answers to {proof['observations']:,} observations "
        f"({proof['shown_by_the_world']:,} of them from the env) within {worst:.1e}",
    ]


def _world(spec: RunSpec, env: str | None) -> World | None:
    """Return some copies of the run's environment; None if it cannot be created, since it is optional for verification."""
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
