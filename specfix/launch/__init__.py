"""A launch as the user has it: a command line, or a manifest that holds one. Nothing of it is run.

splitter (words, as a shell splits them) → script (each command, with what its variables hold) → command (which program,
in which image, with which variables) → arguments (read as the release reads them) → stated (in Serving's terms).
"""
