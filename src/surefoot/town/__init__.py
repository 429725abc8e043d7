"""USE: a town of agents that queue, quarrel, work and learn. Numpy only: torch is never loaded here."""
