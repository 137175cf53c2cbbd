"""Numbers that must fit together: draft tokens, batches, graphs, memory."""
