"""Policies: networks, action heads, distributions, recurrent cells, ONNX export. Torch loads on first use."""
