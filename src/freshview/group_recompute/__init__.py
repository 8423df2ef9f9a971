"""Group recompute: only the groups that a change touches, from the base."""
