"""From findings to a plan, and from the plan to files. Writes nothing that was not in the plan."""
