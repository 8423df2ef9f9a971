"""freshview keeps materialized views on Spark and Delta Lake current, incrementally."""

__version__ = "0.1.0"
