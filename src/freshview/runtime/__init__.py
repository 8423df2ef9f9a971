"""Running refreshes: the embedded Spark, the view graph, stages, commits and recovery."""
