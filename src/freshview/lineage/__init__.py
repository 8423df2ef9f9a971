"""Lineage: the rows of base tables that given rows of a view come from, as expressions of the algebra."""
