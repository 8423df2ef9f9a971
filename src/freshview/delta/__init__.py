"""Delta propagation: what changes in an expression when its tables change."""
