"""Weights against configs, by safetensors headers."""
