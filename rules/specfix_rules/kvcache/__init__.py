"""KV cache and block size."""
