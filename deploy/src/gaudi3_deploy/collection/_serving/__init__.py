"""Files of the collection's `_serving` that need none of its other families."""
