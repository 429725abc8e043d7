"""A causal language model as a policy: backbone, adapters, heads, caches."""
