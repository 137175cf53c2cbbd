"""What the engine is asked to do beside speculating."""
