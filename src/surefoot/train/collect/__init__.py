"""Collection of rollouts from environments, replay and external loops."""
