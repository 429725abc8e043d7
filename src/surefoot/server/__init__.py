"""The HTTP service for decisions and trained policies, and the studio."""
