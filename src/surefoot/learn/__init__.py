"""The engine: a rollout goes in, the weights move, a report comes out. Torch loads on first use."""
