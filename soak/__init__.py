"""Long runs under fire, and a checker apart from the engine. `make soak` runs them."""
