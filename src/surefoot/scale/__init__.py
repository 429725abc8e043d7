"""Beyond one process: rollouts made elsewhere, and one learner made of several."""
