"""The door: policies that decide over HTTP, remember what they decided, and learn from what came of it."""
