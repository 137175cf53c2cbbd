"""A draft on several devices: pipeline, tensor, context, data and expert parallelism."""
