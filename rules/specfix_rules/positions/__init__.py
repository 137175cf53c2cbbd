"""Positions and RoPE."""
