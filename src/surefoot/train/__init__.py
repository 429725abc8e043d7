"""The training loop: collection, runs on disk, evaluation, search. Torch loads on first use."""
