"""Pairs whose makers meant them to be served together: specfix must stay quiet where the engine takes them."""
