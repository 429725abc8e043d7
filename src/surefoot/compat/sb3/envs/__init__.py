"""SB3's small envs for tests, its env checker and its Atari wrappers."""
