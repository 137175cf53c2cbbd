"""A launch file with a few values changed, and every other byte as it was."""
