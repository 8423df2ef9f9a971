"""Base tables whose columns change under their views: a right view, or an error that says why."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import freshview as fv
from freshview.errors import NotIncremental, SourceSchemaChanged
from freshview.runtime.report import ADVANCED, FULL, INCREMENTAL
from tests.integration.two_views import happening
from tests.unchanged import LOG, unchanged

pytestmark = pytest.mark.spark

CHANGED = "SOURCE_SCHEMA_CHANGED"
MAPPED = "'delta.columnMapping.mode'='name'"


class Base:
    """A warehouse over one table that is altered from outside."""

    def __init__(self, spark: SparkSession, root: Path, columns: str, properties: str) -> None:
        self.spark, self.path = spark, root / "outside"
        self.t = f"delta.`{self.path}`"
        made = f"CREATE TABLE {self.t} ({columns}) USING delta TBLPROPERTIES ({properties})"
        spark.sql(made)
        self.warehouse = fv.open(root / "w", spark)
        self.warehouse.register("t", self.path)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement.format(t=self.t))

    def replace(self, query: str) -> None:
        rows = self.spark.sql(query).write.format("delta").mode("overwrite")
        rows.option("overwriteSchema", "true").save(str(self.path))

    def refreshed(self, **options: str) -> dict[str, tuple[str, str | None]]:
        report = self.warehouse.refresh(**options)  # type: ignore[arg-type]
        return {view.view: (view.mode, view.reason) for view in report.views}

    def types(self, view: str) -> str:
        return self.warehouse.read(view).schema.simpleString()

    def values(self, view: str) -> set[tuple[object, ...]]:
        return {tuple(row) for row in self.warehouse.read(view).collect()}

    def check(self, *views: str) -> None:
        for view in views or [entry.name for entry in self.warehouse.catalog.views()]:
            assert self.warehouse.check(view).ok, view


def test_what_a_view_does_not_read_may_change(spark: SparkSession, tmp_path: Path) -> None:
    columns = "k int NOT NULL, v int, u string, w string"
    base = Base(spark, tmp_path, columns, MAPPED)
    base.run("INSERT INTO {t} VALUES (1, 10, 'a', 'x'), (2, 20, 'b', 'y')")
    query = "SELECT k, sum(v) AS s FROM t GROUP BY k"
    warehouse = base.warehouse
    warehouse.create_view("sums", query, policy="STRICT")

    @warehouse.view(policy="STRICT")
    def pairs() -> DataFrame:
        return warehouse.table("t").select("k", "v")

    base.run(
        "ALTER TABLE {t} ADD COLUMNS (extra double)",
        "ALTER TABLE {t} DROP COLUMN w",
        "ALTER TABLE {t} RENAME COLUMN u TO y",
        "ALTER TABLE {t} ALTER COLUMN k DROP NOT NULL",
    )
    assert base.refreshed() == dict.fromkeys(("sums", "pairs"), (ADVANCED, None))
    base.run(
        "INSERT INTO {t} (k, v, y, extra) VALUES (NULL, 1, 'c', 0.5), (1, 5, 'd', NULL)",
        "ALTER TABLE {t} ADD CONSTRAINT given CHECK (v IS NOT NULL)",
    )
    assert base.refreshed() == dict.fromkeys(("sums", "pairs"), (INCREMENTAL, None))
    assert base.values("sums") == {(1, 15), (2, 20), (None, 1)}
    base.check()


def test_columns_may_be_put_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    base = Base(spark, tmp_path, "k int, v int, g string", MAPPED)
    base.run("INSERT INTO {t} VALUES (1, 10, 'a'), (2, 20, 'b')")
    base.warehouse.create_view("star", "SELECT * FROM t", policy="STRICT")
    base.warehouse.create_view("above", "SELECT * FROM star WHERE v > 5", policy="STRICT")
    base.run(
        "ALTER TABLE {t} ALTER COLUMN g FIRST",
        "ALTER TABLE {t} ADD COLUMN (extra int AFTER g)",
        "INSERT INTO {t} (k, v, g) VALUES (3, 30, 'c')",
    )
    assert base.refreshed() == dict.fromkeys(("star", "above"), (INCREMENTAL, None))
    assert base.values("star") == {(1, 10, "a"), (2, 20, "b"), (3, 30, "c")}
    base.check()


def test_a_table_can_come_to_be_partitioned(spark: SparkSession, tmp_path: Path) -> None:
    """Its old files hold the column, its new ones do not."""
    base = Base(spark, tmp_path, "k int, g string", "'freshview.test'='1'")
    base.run("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (2, 'b')")
    base.warehouse.create_view("some", "SELECT k, g FROM t WHERE g = 'a'", policy="INCREMENTAL")
    base.warehouse.create_view("other", "SELECT k FROM t", policy="INCREMENTAL")
    by_g = spark.sql("SELECT 5 AS k, 'a' AS g UNION ALL SELECT 2, 'b'").write.format("delta")
    by_g.mode("overwrite").option("overwriteSchema", "true").partitionBy("g").save(str(base.path))
    assert base.refreshed() == {"some": (FULL, CHANGED), "other": (INCREMENTAL, None)}
    assert base.values("some") == {(5, "a")}
    base.check()
    base.replace("SELECT 7 AS k, 'a' AS g")
    assert base.refreshed() == {"some": (FULL, CHANGED), "other": (INCREMENTAL, None)}
    base.check()


def test_a_text_that_is_no_longer_padded_is_another_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = Base(spark, tmp_path, "g char(3), s struct<a: char(2)>, w varchar(3)", MAPPED)
    base.run("INSERT INTO {t} VALUES ('a', named_struct('a', 'x'), 'w')")
    for name, column in (("texts", "g"), ("nested", "s.a"), ("limited", "w")):
        query = f"SELECT {column} AS x, count(*) AS n FROM t GROUP BY 1"
        base.warehouse.create_view(name, query, policy="INCREMENTAL")
    base.run(
        "ALTER TABLE {t} ALTER COLUMN g TYPE varchar(3)",
        "ALTER TABLE {t} ALTER COLUMN w TYPE string",
        "INSERT INTO {t} VALUES ('a', named_struct('a', 'x'), 'w')",
    )
    assert base.refreshed() == {
        "texts": (FULL, CHANGED),
        "nested": (INCREMENTAL, None),
        "limited": (INCREMENTAL, None),
    }
    base.check()


def test_a_view_takes_the_types_of_widened_columns(spark: SparkSession, tmp_path: Path) -> None:
    columns = "k int, f float, d decimal(10,2)"
    base = Base(spark, tmp_path, columns, "'delta.enableTypeWidening'='true'")
    base.run("INSERT INTO {t} VALUES (1, 0.5, 1.25), (2, 1.5, 2.25)")
    warehouse = base.warehouse
    warehouse.create_view("rows", "SELECT k, f FROM t", policy="INCREMENTAL")
    warehouse.create_view("sums", "SELECT k % 2 AS g, sum(d) AS s FROM t GROUP BY 1")
    warehouse.create_view("above", "SELECT max(s) AS s FROM sums", policy="INCREMENTAL")
    base.run(
        "ALTER TABLE {t} ALTER COLUMN k TYPE bigint",
        "ALTER TABLE {t} ALTER COLUMN f TYPE double",
        "ALTER TABLE {t} ALTER COLUMN d TYPE decimal(20,2)",
        "INSERT INTO {t} VALUES (5000000001, 0.1D, 123456789012345678.25)",
    )
    assert base.refreshed() == {
        "rows": (FULL, CHANGED),
        "sums": (FULL, CHANGED),
        "above": (FULL, CHANGED),
    }
    assert base.types("rows") == "struct<k:bigint,f:double>"
    assert base.types("sums") == "struct<g:bigint,s:decimal(30,2)>"
    assert base.types("above") == "struct<s:decimal(30,2)>"
    base.run("DELETE FROM {t} WHERE k = 1")
    assert base.refreshed()["rows"] == (INCREMENTAL, None)
    base.check()


def test_a_view_can_come_to_be_kept_in_another_way(spark: SparkSession, tmp_path: Path) -> None:
    """A sum of floats, and rows that cannot be counted, are recomputed; and back again."""
    base = Base(spark, tmp_path, "k int, v int", MAPPED)
    base.run("INSERT INTO {t} VALUES (1, 10), (1, 10)")
    warehouse = base.warehouse
    warehouse.create_view("sums", "SELECT k, sum(v) AS s FROM t GROUP BY k", policy="STRICT")
    warehouse.create_view("rows", "SELECT k, v AS x FROM t", policy="INCREMENTAL")
    warehouse.create_view("above", "SELECT count(*) AS n FROM rows", policy="INCREMENTAL")
    first = warehouse.refresh(full=True).epoch
    base.replace("SELECT 1 AS k, 1.5D AS v UNION ALL SELECT 1, 1.5D")
    with pytest.raises(NotIncremental) as strict:
        warehouse.refresh()
    assert strict.value.parameters["reason"] == CHANGED
    assert base.values("sums") == {(1, 20)}
    assert base.types("rows") == "struct<k:int,x:double>"
    warehouse.set_policy("sums", "INCREMENTAL")
    assert base.refreshed()["sums"] == (FULL, CHANGED)
    base.check("sums", "rows")

    warehouse.drop_view("sums")
    base.replace("SELECT 1 AS k, map('a', 1) AS v UNION ALL SELECT 1, map('a', 1)")
    modes = {"rows": (FULL, CHANGED), "above": (FULL, CHANGED)}
    assert base.refreshed() == modes
    assert base.values("above") == {(2,)}
    base.check("rows")
    base.replace("SELECT 1 AS k, 7 AS v UNION ALL SELECT 2, 8 UNION ALL SELECT 2, 8")
    assert base.refreshed() == modes
    base.run("DELETE FROM {t} WHERE k = 1")
    assert base.refreshed() == dict.fromkeys(modes, (INCREMENTAL, None))
    assert base.values("above") == {(2,)}
    base.check()
    assert first is not None
    assert [tuple(row) for row in warehouse.read("rows", epoch=first).collect()] == [(1, 10)] * 2


def test_a_column_that_is_gone_is_named(spark: SparkSession, tmp_path: Path) -> None:
    base = Base(spark, tmp_path, "k int, v int, u string", MAPPED)
    base.run("INSERT INTO {t} VALUES (1, 10, 'a')")
    warehouse = base.warehouse
    grouped = "SELECT u, count(*) AS n FROM t GROUP BY u"
    warehouse.create_view("reads", grouped, policy="INCREMENTAL")
    warehouse.create_view("star", "SELECT * FROM t", policy="INCREMENTAL")
    warehouse.create_view("above", "SELECT count(*) AS n FROM star", policy="INCREMENTAL")
    warehouse.create_view("other", "SELECT k, v FROM t", policy="STRICT")

    @warehouse.view(policy="INCREMENTAL")
    def calls() -> DataFrame:
        return warehouse.table("t").select("u")

    base.run("ALTER TABLE {t} RENAME COLUMN u TO y", "INSERT INTO {t} VALUES (2, 20, 'b')")
    for view in ("reads", "star", "calls"):
        with unchanged(warehouse.root, (LOG,)), pytest.raises(SourceSchemaChanged) as gone:
            warehouse.refresh(view)
        assert gone.value.parameters["name"] == view
        assert gone.value.parameters["table"] == "t"
        assert "no column u" in str(gone.value.parameters["change"])
        with pytest.raises(SourceSchemaChanged):
            warehouse.explain(view)
    with pytest.raises(SourceSchemaChanged) as all_of_them:
        warehouse.refresh()
    assert "above" in "\n".join(all_of_them.value.__notes__)
    assert base.values("reads") == {("a", 1)}
    assert base.values("above") == {(1,)}
    assert base.values("other") == {(1, 10), (2, 20)}
    base.run("ALTER TABLE {t} RENAME COLUMN y TO u")
    assert {mode for mode, _ in base.refreshed().values()} <= {INCREMENTAL, ADVANCED}
    base.check()
    base.run("ALTER TABLE {t} DROP COLUMN u", "ALTER TABLE {t} ADD COLUMNS (u string)")
    assert base.refreshed()["reads"] == (FULL, CHANGED)
    assert base.values("reads") == {(None, 2)}
    warehouse.create_view("typed", "SELECT abs(v) AS a FROM t")
    base.replace("SELECT 1 AS k, array(1) AS v, 'a' AS u")
    with pytest.raises(SourceSchemaChanged) as typed:
        warehouse.refresh("typed")
    assert typed.value.parameters["change"] == "a column has another type"


READS_X = {
    "compared": "SELECT k, x = '01' AS one FROM t",
    "grouped": "SELECT x = '01' AS one, count(*) AS n FROM t GROUP BY x = '01'",
    "text": "SELECT k, concat(x, '') AS c FROM t",
    "shown": "SELECT k, x FROM t",
    "above": "SELECT count(*) AS n, sum(k) AS k FROM shown WHERE x = '01'",
}


@pytest.fixture
def base(spark: SparkSession, tmp_path: Path) -> Base:
    """A table whose column x is going to have another type."""
    made = Base(spark, tmp_path, "k int, x int", "'delta.checkpointInterval'='10'")
    made.run("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    return made


@pytest.mark.parametrize("other", ["string", "double"])
def test_a_type_that_changes_during_a_refresh_is_the_next_ones(base: Base, other: str) -> None:
    """Each view is analyzed over the versions that were pinned, whatever the table is by then."""
    for name, text in READS_X.items():
        base.warehouse.create_view(name, text, policy="STRICT")
    base.run("INSERT INTO {t} VALUES (3, 1), (4, 5)")
    changed = f"SELECT int(id) AS k, CAST(id AS {other}) AS x FROM range(1, 4)"
    with happening("refresh.pinned", lambda: base.replace(changed)):
        assert {mode for mode, _ in base.refreshed().values()} == {INCREMENTAL}
    base.check()
    full = base.refreshed(policy="INCREMENTAL")
    assert {full[name] for name in READS_X if name != "above"} == {(FULL, CHANGED)}
    base.check()
    with happening("refresh.pinned", lambda: base.replace("SELECT 1 AS k, 1 AS x")):
        base.refreshed(policy="FULL")
    base.check()


@pytest.mark.parametrize("other", ["string", "double"])
def test_a_view_over_one_that_is_about_to_change_its_types(base: Base, other: str) -> None:
    base.warehouse.create_table("u", pa.table({"k": [1, 2, 3]}))
    base.warehouse.create_view("below", "SELECT k, x FROM t")
    base.warehouse.create_view("beside", "SELECT k FROM u")
    base.replace(f"SELECT int(id) AS k, CAST(id AS {other}) AS x FROM range(1, 4)")
    base.check("below")
    assert base.warehouse.check("below", repair_groups=True).repaired == 0
    base.warehouse.apply({"u": fv.TableChanges(insert=[{"k": 4}])})
    base.warehouse = fv.open(base.warehouse.root, base.spark)  # which has to analyze both again
    joined = "SELECT b.x, count(*) AS n FROM below b JOIN beside s ON b.k = s.k GROUP BY b.x"
    base.warehouse.create_view("new", joined)
    assert f"x:{other}" in base.types("new")
    log = base.warehouse.parts.log.read(["view", "reason"]).to_pylist()
    assert {"view": "below", "reason": "SOURCE_SCHEMA_CHANGED"} in log
    with happening("refresh.pinned", lambda: base.replace("SELECT 1 AS k, 'a' AS x")):
        base.warehouse.create_view("newer", "SELECT k, concat(x, '!') AS x FROM below")
    base.check()
    end = ".0!" if other == "double" else "!"
    assert base.values("newer") == {(i, f"{i}{end}") for i in (1, 2, 3)}
