"""The count algorithm: views as extents, rows with the number of reasons for them to exist."""
