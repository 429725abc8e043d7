"""sb3-contrib's `MaskablePPO` and `RecurrentPPO` on this package's engine. Import them as `surefoot.sb3_contrib`."""
