"""Config classes run on symbols instead of values."""
