"""From Spark to the algebra: statements, the analyzed plan of a query, and what cannot be kept."""
