"""A multi-agent town simulation with queues, rivalry and jobs, and the training of its policies."""
