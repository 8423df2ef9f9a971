"""Finding and moving rows: versions, changes, lookups and applies of Delta tables."""
