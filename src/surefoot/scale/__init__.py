"""More than one process: rollout workers (local or Ray), data-parallel learners, distributed search."""
