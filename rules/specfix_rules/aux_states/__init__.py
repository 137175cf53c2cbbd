"""Auxiliary hidden states."""
