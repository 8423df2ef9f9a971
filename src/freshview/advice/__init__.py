"""Rewrites of definitions that have no incremental rule, or that read more than they have to.

One rule per file; ``rules`` has them in order. What a rule drafts is shown only once it was planned: each
of its views must be kept incrementally, without a reason against it.
"""
