"""The paper: pure functions on tensors. No I/O, no config, no state."""
