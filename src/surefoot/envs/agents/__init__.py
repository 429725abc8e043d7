"""Multi-agent environments: PettingZoo and two-player games."""
