"""Drop-in replacement for sb3-contrib's `MaskablePPO` and `RecurrentPPO`: the same module paths, names and defaults.

`sed 's/sb3_contrib/surefoot.sb3_contrib/'` is the migration of a script. The code is in `surefoot.compat.sb3.contrib`.
"""

from __future__ import annotations

from surefoot.compat.sb3.contrib.ppo_mask import MaskablePPO
from surefoot.compat.sb3.contrib.ppo_recurrent import RecurrentPPO
from surefoot.compat.sb3.functions import SB3_VERSION as __version__
from surefoot.compat.sb3.other_algorithms import ARS, QRDQN, TQC, TRPO, CrossQ
from surefoot.compat.sb3.paths import install

install()

__all__ = ["ARS", "QRDQN", "TQC", "TRPO", "CrossQ", "MaskablePPO", "RecurrentPPO", "__version__"]
