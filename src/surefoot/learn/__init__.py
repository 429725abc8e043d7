"""The PPO learner: config, update, optimizer, schedules. Torch loads on first use."""
