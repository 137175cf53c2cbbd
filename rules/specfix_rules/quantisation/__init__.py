"""Quantisation and dtypes."""
