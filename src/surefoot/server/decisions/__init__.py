"""The decision service: policies, decisions, outcomes, learning, storage."""
