"""Change tables and the refresh operator, after [GM06]."""
