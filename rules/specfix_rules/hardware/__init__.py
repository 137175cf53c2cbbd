"""Hardware, Triton and attention backends."""
