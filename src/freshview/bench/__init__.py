"""Benchmarks that ``freshview bench`` runs.

They are part of the package because they are a command of it: what is installed can measure itself,
on the machine and the Spark where it will be used, without a checkout of the sources.
"""
