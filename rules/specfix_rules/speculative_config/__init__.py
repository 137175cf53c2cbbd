"""Keys of the speculative config."""
