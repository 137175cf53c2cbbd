"""What decides over a merge: a project's settings, findings that are let pass, debts, two releases side by side."""
