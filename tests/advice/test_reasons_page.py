"""docs/reasons.md holds: its views have the reason that they are shown for, its rewrites have none."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import FreshviewError, ViewNotMaintainable
from freshview.frontend.statements import CreateView, parse_statement
from freshview.planner.roles import roles
from freshview.planner.strategy import Strategy
from freshview.runtime.definitions import Definitions
from tests.tidy.test_reasons_documented import sections

pytestmark = pytest.mark.spark

ORDERS = pa.schema(
    {
        "id": pa.int64(),
        "city": pa.string(),
        "weight": pa.float64(),
        "quantity": pa.int64(),
        "price": pa.decimal128(38, 10),
        "attributes": pa.map_(pa.string(), pa.int64()),
    }
)
LINES = pa.schema({"id": pa.int64(), "item": pa.string(), "amount": pa.int32()})
IN_ONE_REFRESH = {"EVALUATION_FAILED"}
"""Reasons that a definition shows with certain changes only."""


@pytest.fixture(scope="module")
def definitions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Definitions:
    warehouse = fv.open(tmp_path_factory.mktemp("page") / "warehouse", spark)
    warehouse.create_table("orders", ORDERS)
    warehouse.create_table("lines", LINES)
    return warehouse._definitions


def block(text: str) -> str:
    """The SQL that comes first in a text; empty if there is none."""
    found = re.search(r"^```sql\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def planned(definitions: Definitions, text: str) -> tuple[Strategy, ...]:
    """The strategies of statements, or of a query."""
    given = [parse_statement(part) for part in re.split(r";\n", text) if part.strip()]
    if not isinstance(given[0], CreateView):
        return definitions.tried([("v", text)], "auto")
    created = [statement for statement in given if isinstance(statement, CreateView)]
    return definitions.tried([(c.name, c.query) for c in created], created[-1].technique)


def reasons(definitions: Definitions, text: str) -> Iterator[str]:
    """The codes of all that a definition falls short of."""
    try:
        made = planned(definitions, text)
    except ViewNotMaintainable as refused:
        yield str(refused.parameters["reason"])
    except FreshviewError as refused:
        yield refused.code
    else:
        for view in made:
            if view.reason is not None:
                yield view.reason.code
            if view.singular is not None:
                yield view.singular.code
            for role in roles(view):
                yield from role.singular


VIEWS = {code: block(text.split("**Rewrite.**")[0]) for code, text in sections().items()}
REWRITES = {code: block(text.split("**Rewrite.**")[1]) for code, text in sections().items()}


@pytest.mark.parametrize("code", [c for c, sql in VIEWS.items() if sql and c not in IN_ONE_REFRESH])
def test_the_view_has_the_reason(code: str, definitions: Definitions) -> None:
    assert code in set(reasons(definitions, VIEWS[code]))


@pytest.mark.parametrize("code", [code for code, sql in REWRITES.items() if sql])
def test_the_rewrite_has_no_reason(code: str, definitions: Definitions) -> None:
    assert set(reasons(definitions, REWRITES[code])) == set()


def test_without_ansi_a_sum_of_a_wide_decimal_has_its_reason(spark: SparkSession) -> None:
    from freshview.frontend.catalyst import definition_session, import_sql
    from freshview.planner.strategy import Technique
    from freshview.planner.techniques import strategy

    session = definition_session(spark, {})
    session.conf.set("spark.sql.ansi.enabled", "false")
    relation = import_sql(session, "SELECT sum(CAST(1 AS DECIMAL(38,2))) AS s FROM range(3)")
    made = strategy("v", relation, Technique.CHANGE_TABLE)
    assert made.reason is not None
    assert made.reason.code == "NULL_ON_OVERFLOW"
