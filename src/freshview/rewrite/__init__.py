"""Simplifications of a view's expression, one file each; ``rules`` holds their order."""
