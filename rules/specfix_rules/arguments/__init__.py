"""What the release makes of a launch command."""
