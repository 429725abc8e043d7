"""Module paths of Stable-Baselines3 under `surefoot.sb3`, and of sb3-contrib under `surefoot.sb3_contrib`.

`surefoot.sb3.common.callbacks` is the module `surefoot.compat.sb3.callbacks` under another name: one module object, two paths.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

HOME = "surefoot.compat.sb3"

# SB3's path → module in compat/sb3, or several. A path with others below it is a package; "" has no names itself.
PATHS = {
    "surefoot.sb3.common": "",
    "surefoot.sb3.common.atari_wrappers": "envs.atari",
    "surefoot.sb3.common.base_class": "algorithm",
    "surefoot.sb3.common.buffers": "rollout_buffer",
    "surefoot.sb3.common.callbacks": "callbacks eval_callback stop_callbacks",
    "surefoot.sb3.common.distributions": "policies.distributions",
    "surefoot.sb3.common.env_checker": "envs.check",
    "surefoot.sb3.common.env_util": "make_env",
    "surefoot.sb3.common.envs": "envs.bit_flipping envs.grid envs.identity",
    "surefoot.sb3.common.envs.bit_flipping_env": "envs.bit_flipping",
    "surefoot.sb3.common.envs.identity_env": "envs.identity",
    "surefoot.sb3.common.envs.multi_input_envs": "envs.grid",
    "surefoot.sb3.common.evaluation": "evaluation",
    "surefoot.sb3.common.logger": "record.formats record.logger",
    "surefoot.sb3.common.monitor": "record.monitor",
    "surefoot.sb3.common.noise": "noise",
    "surefoot.sb3.common.on_policy_algorithm": "on_policy",
    "surefoot.sb3.common.policies": "policies.base policies.actor_critic",
    "surefoot.sb3.common.preprocessing": "spaces",
    "surefoot.sb3.common.results_plotter": "record.plots",
    "surefoot.sb3.common.running_mean_std": "vec_env.normalize",
    "surefoot.sb3.common.save_util": "files.open_files",
    "surefoot.sb3.common.sb2_compat": "",
    "surefoot.sb3.common.sb2_compat.rmsprop_tf_like": "policies.rmsprop",
    "surefoot.sb3.common.torch_layers": "policies.layers",
    "surefoot.sb3.common.type_aliases": "type_aliases",
    "surefoot.sb3.common.utils": "functions",
    "surefoot.sb3.common.vec_env": "vec_env",
    "surefoot.sb3.common.vec_env.base_vec_env": "vec_env.base",
    "surefoot.sb3.common.vec_env.dummy_vec_env": "vec_env.dummy",
    "surefoot.sb3.common.vec_env.stacked_observations": "vec_env.stacking",
    "surefoot.sb3.common.vec_env.subproc_vec_env": "vec_env.subproc",
    "surefoot.sb3.common.vec_env.util": "vec_env.dummy",
    "surefoot.sb3.common.vec_env.vec_check_nan": "vec_env.wrappers",
    "surefoot.sb3.common.vec_env.vec_extract_dict_obs": "vec_env.wrappers",
    "surefoot.sb3.common.vec_env.vec_frame_stack": "vec_env.stacking",
    "surefoot.sb3.common.vec_env.vec_monitor": "vec_env.wrappers",
    "surefoot.sb3.common.vec_env.vec_normalize": "vec_env.normalize",
    "surefoot.sb3.common.vec_env.vec_transpose": "vec_env.wrappers",
    "surefoot.sb3.common.vec_env.vec_video_recorder": "vec_env.wrappers",
    **{f"surefoot.sb3.{name}": "other_algorithms" for name in ("a2c", "ddpg", "dqn", "her", "sac", "td3")},
    "surefoot.sb3.ppo": "ppo",
    "surefoot.sb3.ppo.policies": "ppo",
    "surefoot.sb3.ppo.ppo": "ppo",
    "surefoot.sb3_contrib.common": "",
    "surefoot.sb3_contrib.common.envs": "contrib.envs",
    "surefoot.sb3_contrib.common.envs.invalid_actions_env": "contrib.envs",
    "surefoot.sb3_contrib.common.maskable": "",
    "surefoot.sb3_contrib.common.maskable.callbacks": "contrib.mask_evaluation",
    "surefoot.sb3_contrib.common.maskable.distributions": "contrib.mask_distributions",
    "surefoot.sb3_contrib.common.maskable.evaluation": "contrib.mask_evaluation",
    "surefoot.sb3_contrib.common.maskable.policies": "contrib.mask_policies",
    "surefoot.sb3_contrib.common.maskable.utils": "contrib.masks",
    "surefoot.sb3_contrib.common.recurrent": "",
    "surefoot.sb3_contrib.common.recurrent.policies": "contrib.recurrent_policies",
    "surefoot.sb3_contrib.common.recurrent.type_aliases": "contrib.recurrent_policies",
    "surefoot.sb3_contrib.common.vec_env": "other_algorithms",
    "surefoot.sb3_contrib.common.wrappers": "contrib.masks contrib.time_feature",
    "surefoot.sb3_contrib.common.wrappers.action_masker": "contrib.masks",
    "surefoot.sb3_contrib.common.wrappers.time_feature": "contrib.time_feature",
    **{f"surefoot.sb3_contrib.{name}": "other_algorithms" for name in ("ars", "crossq", "qrdqn", "tqc", "trpo")},
    "surefoot.sb3_contrib.ppo_mask": "contrib.ppo_mask",
    "surefoot.sb3_contrib.ppo_mask.policies": "contrib.ppo_mask",
    "surefoot.sb3_contrib.ppo_mask.ppo_mask": "contrib.ppo_mask",
    "surefoot.sb3_contrib.ppo_recurrent": "contrib.ppo_recurrent",
    "surefoot.sb3_contrib.ppo_recurrent.policies": "contrib.ppo_recurrent",
    "surefoot.sb3_contrib.ppo_recurrent.ppo_recurrent": "contrib.ppo_recurrent",
}
PACKAGES = {path.rpartition(".")[0] for path in PATHS}


class MirrorFinder(MetaPathFinder, Loader):
    """Imports the paths in `PATHS`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=fullname in PACKAGES) if fullname in PATHS else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        targets = [import_module(f"{HOME}.{target}") for target in PATHS[name].split()]
        if name not in PACKAGES and len(targets) == 1:
            # The import system returns the entry of sys.modules after this call: the same module object for both paths.
            sys.modules[name] = targets[0]
        for target in targets:
            vars(module).update({key: value for key, value in vars(target).items() if not key.startswith("__")})


def install() -> None:
    """Add the finder to the import system, once; first, because `compat.sb3` has files of the same names."""
    if not any(isinstance(finder, MirrorFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, MirrorFinder())
