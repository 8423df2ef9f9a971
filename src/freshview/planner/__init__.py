"""From algebra to work: what is cheaper, in which order, and the Spark plan that does it."""
