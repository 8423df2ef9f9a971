"""The relational algebra that views are made of: frozen nodes, no Spark, no input or output."""
