"""Import and export: Stable-Baselines3, RL Zoo, Minari, recordings, ONNX."""
