"""Other systems' names, thin over the library: one module or package per system."""
