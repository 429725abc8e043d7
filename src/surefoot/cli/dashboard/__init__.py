"""The live training display in the terminal."""
