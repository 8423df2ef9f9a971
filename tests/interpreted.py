"""Settings with which Spark interprets plans instead of compiling each one.

Tests run thousands of different tiny queries, and compiling them took half of the time. The demo, the
benchmark, the examples and the commands start a Spark of their own, and compile.
"""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
