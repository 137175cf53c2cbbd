"""Reading an engine's source by `ast`: files, classes, and what a function decides."""
