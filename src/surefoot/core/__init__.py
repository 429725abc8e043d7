"""The PPO algorithm as pure functions on tensors: advantages, losses, divergences. No I/O, no config, no state."""
