"""Drop-in replacement for Stable-Baselines3. Under construction: see `surefoot.PPO` for the names that work today."""
