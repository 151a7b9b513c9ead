"""A vLLM that starts in milliseconds, what is asked of it and of the real one alike, and clients for both."""
