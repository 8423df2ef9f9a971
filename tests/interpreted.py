"""Settings with which a Spark compiles little: neither each plan nor all of its own methods.

Tests run thousands of different tiny queries. Compiling them took half of the time, and the JVM's
second compiler a third of what was left. The demo, the benchmark, the examples and the commands
start a Spark of their own, and compile.
"""

_HOTTER = {"Invocation": 50_000, "MinInvocation": 6_000, "Compile": 150_000, "BackEdge": 400_000}
"""Ten times as much use as by default before a method is compiled a second time."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": " ".join(
        f"-XX:Tier4{counted}Threshold={uses}" for counted, uses in _HOTTER.items()
    ),
}
