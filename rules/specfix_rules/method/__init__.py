"""Method and architecture."""
