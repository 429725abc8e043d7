"""SB3's policies and vec envs as the engine takes them: `Policy` and `World`."""
