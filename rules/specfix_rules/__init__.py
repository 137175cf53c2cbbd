"""Rules of specfix: one family a folder, one rule a file, its page beside it."""
