"""Random queries in SQL: every operator over every other, nested to a depth, from one seed.

Every relation is a whole SELECT with columns of unique names, so that any two can be put together. The
text is in the dialect that Spark and DuckDB share, unless ``spark_only`` adds what only Spark has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.random_queries.expressions import SUMMABLE, Column, Expressions, Kind, order

TABLES: dict[str, tuple[tuple[str, Kind], ...]] = {
    "r": (("id", Kind.INT), ("k", Kind.INT), ("g", Kind.TEXT), ("v", Kind.MONEY)),
    "s": (("k", Kind.INT), ("h", Kind.INT), ("w", Kind.REAL), ("day", Kind.DAY)),
    "t": (("h", Kind.INT), ("name", Kind.TEXT), ("day", Kind.DAY)),
}
MOST_LEAVES = 6
MOST_ROWS = 3_000
"""About how many rows an intermediate relation may have."""
_TABLE_ROWS = 10


@dataclass(frozen=True)
class Relation:
    """A SELECT, its columns, and what is known of its size."""

    text: str
    columns: tuple[Column, ...]
    rows: float
    leaves: int
    operators: frozenset[str] = frozenset()

    @property
    def names(self) -> str:
        return ", ".join(column.name for column in self.columns)

    def of(self, *kinds: Kind) -> list[Column]:
        return [column for column in self.columns if column.kind in kinds]


class Generator:
    """Draws relations; names are counted, so that the same dice give the same text."""

    def __init__(self, dice: random.Random, *, spark_only: bool = False) -> None:
        self.dice = dice
        self.scalar = Expressions(dice)
        self.spark_only = spark_only
        self._names = 0

    def query(self, depth: int) -> Relation:
        """A query of an operator over others, with at least two tables' rows most of the time."""
        while True:
            self._names = 0
            drawn = self.relation(depth)
            if drawn.leaves <= MOST_LEAVES and (drawn.leaves > 1 or self.dice.random() < 0.2):
                return drawn

    def relation(self, depth: int) -> Relation:
        if depth <= 0 or self.dice.random() < 0.05:
            return self.scan()
        return self.dice.choice(self.operators())(depth)

    def operators(self) -> Sequence[Callable[[int], Relation]]:
        shared = [
            self.filter, self.project, self.join, self.join, self.outer_join, self.outer_join,
            self.exists, self.membership, self.scalar_subquery, self.correlated_subquery, self.union,
            self.set_operation, self.distinct, self.aggregate, self.aggregate, self.grouping_sets,
            self.window, self.window, self.limit, self.lateral, self.common_table,
        ]  # fmt: skip
        return [*shared, self.explode, self.pivot] if self.spark_only else shared

    def name(self, letter: str = "c") -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def column(self, kind: Kind) -> Column:
        return Column(self.name(), kind)

    def _made(
        self,
        operator: str,
        text: str,
        columns: Sequence[Column],
        rows: float,
        *operands: Relation,
    ) -> Relation:
        below = frozenset[str]().union(*(operand.operators for operand in operands))
        leaves = sum(operand.leaves for operand in operands)
        return Relation(text, tuple(columns), rows, leaves, below | {operator})

    def _nested(self, relation: Relation) -> str:
        return f"({relation.text}) {self.name('q')}"

    def _computed(self, relation: Relation, count: int) -> tuple[list[str], list[Column]]:
        """Some expressions over a relation, and the columns they make."""
        texts, columns = [], []
        for _ in range(count):
            kind = self.dice.choice([column.kind for column in relation.columns])
            columns.append(self.column(kind))
            texts.append(f"{self.scalar.of(relation.columns, kind)} AS {columns[-1].name}")
        return texts, columns

    def scan(self) -> Relation:
        table = self.dice.choice(sorted(TABLES))
        columns = [(name, self.column(kind)) for name, kind in TABLES[table]]
        shown = ", ".join(f"{name} AS {column.name}" for name, column in columns)
        made = tuple(column for _, column in columns)
        return Relation(f"SELECT {shown} FROM {table}", made, _TABLE_ROWS, 1)

    def filter(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        condition = self.scalar.condition(child.columns)
        text = f"SELECT * FROM {self._nested(child)} WHERE {condition}"
        return self._made("filter", text, child.columns, child.rows / 2, child)

    def project(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        texts, columns = self._computed(child, self.dice.randrange(1, 4))
        text = f"SELECT {', '.join(texts)} FROM {self._nested(child)}"
        return self._made("project", text, columns, child.rows, child)

    def join(self, depth: int) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        columns = left.columns + right.columns
        rows = left.rows * right.rows
        if rows < MOST_ROWS and self.dice.random() < 0.1:
            text = f"SELECT * FROM {self._nested(left)} CROSS JOIN {self._nested(right)}"
            return self._made("cross join", text, columns, rows, left, right)
        condition = self.scalar.between(left.columns, right.columns)
        text = f"SELECT * FROM {self._nested(left)} JOIN {self._nested(right)} ON {condition}"
        return self._limited(self._made("join", text, columns, rows / 4, left, right))

    def _limited(self, relation: Relation) -> Relation:
        """Cut down to a size that an evaluation of a random query can bear."""
        return relation if relation.rows < MOST_ROWS else self._first(relation, 50)

    def outer_join(self, depth: int) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kind = self.dice.choice(["LEFT", "RIGHT", "FULL"])
        condition = self.scalar.between(left.columns, right.columns)
        text = (
            f"SELECT * FROM {self._nested(left)} {kind} JOIN {self._nested(right)} ON {condition}"
        )
        columns = left.columns + right.columns
        rows = left.rows * right.rows / 4 + left.rows + right.rows
        return self._limited(self._made(f"{kind.lower()} join", text, columns, rows, left, right))

    def exists(self, depth: int) -> Relation:
        """EXISTS and NOT EXISTS, alone or in an OR."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        negated = self.dice.choice(["", "NOT "])
        condition = self.scalar.between(left.columns, right.columns)
        exists = f"{negated}EXISTS (SELECT 1 FROM {self._nested(right)} WHERE {condition})"
        operator = f"{negated}exists"
        if self.dice.random() < 0.3:
            exists = f"({exists} OR {self.scalar.condition(left.columns, 0)})"
            operator += " in or"
        text = f"SELECT * FROM {self._nested(left)} WHERE {exists}"
        return self._made(operator.lower(), text, left.columns, left.rows / 2, left, right)

    def membership(self, depth: int) -> Relation:
        """IN and NOT IN, which a null on either side makes unknown."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        pairs = [(a, b) for a in left.columns for b in right.columns if a.kind is b.kind]
        if not pairs:
            return self.exists(depth)
        a, b = self.dice.choice(pairs)
        negated = self.dice.choice(["", "NOT "])
        where = (
            f" WHERE {self.scalar.condition(right.columns, 0)}" if self.dice.random() < 0.5 else ""
        )
        within = f"SELECT {b.name} FROM {self._nested(right)}{where}"
        test = f"{a.name} {negated}IN ({within})"
        operator = f"{negated}in"
        if self.dice.random() < 0.4:
            for _ in range(self.dice.randrange(1, 4)):
                test = self._below_not(test, left.columns)
            operator += " below not"
        elif self.dice.random() < 0.2:
            test = f"({test} OR {self.scalar.condition(left.columns, 0)})"
            operator += " in or"
        from_left = f"FROM {self._nested(left)}"
        if self.dice.random() < 0.3:
            made, shown = self.name("e"), ", ".join(column.name for column in left.columns)
            from_left = f"FROM (SELECT *, {test} AS {made} {from_left}) {self.name('q')}"
            text = f"SELECT {shown} {from_left} WHERE {self.dice.choice(['', 'NOT '])}{made}"
        else:
            text = f"SELECT * {from_left} WHERE {test}"
        return self._made(operator.lower(), text, left.columns, left.rows / 2, left, right)

    def _below_not(self, test: str, columns: Sequence[Column]) -> str:
        """A test inside of one more NOT, AND, OR or comparison."""
        other = self.scalar.condition(columns, 0)
        return self.dice.choice(
            [
                f"NOT ({test} AND {other})",
                f"NOT ({test} OR {other})",
                f"({other} AND {test})",
                f"({test} OR {other})",
                f"NOT ({test})",
                f"({test}) = FALSE",
            ]
        )

    def scalar_subquery(self, depth: int) -> Relation:
        """One value of another relation, shown or compared."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        call, kind = self.call(right)
        value = f"(SELECT {call} FROM {self._nested(right)})"
        alike = left.of(kind)
        if alike and self.dice.random() < 0.5:
            operation = self.dice.choice(["=", "<", ">=", "<>"])
            condition = f"{self.dice.choice(alike).name} {operation} {value}"
            text = f"SELECT * FROM {self._nested(left)} WHERE {condition}"
            return self._made("subquery in where", text, left.columns, left.rows, left, right)
        made = self.column(kind)
        text = f"SELECT *, {value} AS {made.name} FROM {self._nested(left)}"
        return self._made("subquery", text, (*left.columns, made), left.rows, left, right)

    def correlated_subquery(self, depth: int) -> Relation:
        """One value for each row, of the rows that match it; a count is 0 where none does."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        pairs = [(a, b) for a in left.columns for b in right.columns if a.kind is b.kind]
        if not pairs:
            return self.scalar_subquery(depth)
        a, b = self.dice.choice(pairs)
        call, kind = self.call(right)
        value = f"(SELECT {call} FROM {self._nested(right)} WHERE {b.name} = {a.name})"
        made = self.column(kind)
        text = f"SELECT *, {value} AS {made.name} FROM {self._nested(left)}"
        return self._made(
            "correlated subquery", text, (*left.columns, made), left.rows, left, right
        )

    def lateral(self, depth: int) -> Relation:
        """The first row that matches, or all of an aggregate's."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        pairs = [(a, b) for a in left.columns for b in right.columns if a.kind is b.kind]
        if not pairs:
            return self.join(depth)
        a, b = self.dice.choice(pairs)
        first = order(self.dice, right.columns, total=True)
        within = f"SELECT * FROM {self._nested(right)} WHERE {b.name} = {a.name} {first} LIMIT 1"
        kind = self.dice.choice(["LEFT", "INNER"])
        text = f"SELECT * FROM {self._nested(left)} {kind} JOIN LATERAL ({within}) {self.name('l')} ON TRUE"
        return self._made("lateral", text, left.columns + right.columns, left.rows, left, right)

    def common_table(self, depth: int) -> Relation:
        """A common table expression that is read twice."""
        child = self.relation(depth - 1)
        table, one, two = self.name("w"), self.name("a"), self.name("b")
        first = [self.column(column.kind) for column in child.columns]
        second = self.column(child.columns[0].kind)
        join = self.dice.choice(child.columns)
        shown = [f"{one}.{c.name} AS {n.name}" for c, n in zip(child.columns, first, strict=True)]
        shown.append(f"{two}.{child.columns[0].name} AS {second.name}")
        text = (
            f"WITH {table} AS ({child.text}) SELECT {', '.join(shown)} FROM {table} {one}"
            f" {self.dice.choice(['LEFT', 'INNER'])} JOIN {table} {two} ON {one}.{join.name} = {two}.{join.name}"
        )
        rows = child.rows * child.rows / 4
        return self._limited(self._made("cte", text, (*first, second), rows, child, child))

    def _alike(self, depth: int) -> tuple[Relation, Relation, tuple[Column, ...], tuple[str, str]]:
        """Two relations, columns of the same kinds, and what to select of each."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kinds = [self.dice.choice(left.columns).kind for _ in range(self.dice.randrange(1, 4))]
        columns = tuple(self.column(kind) for kind in kinds)
        texts = []
        for operand in (left, right):
            shown = [f"{self.scalar.of(operand.columns, c.kind)} AS {c.name}" for c in columns]
            texts.append(f"SELECT {', '.join(shown)} FROM {self._nested(operand)}")
        return left, right, columns, (texts[0], texts[1])

    def union(self, depth: int) -> Relation:
        left, right, columns, texts = self._alike(depth)
        word = self.dice.choice(["UNION ALL", "UNION ALL", "UNION"])
        text = f"SELECT * FROM ({texts[0]} {word} {texts[1]}) {self.name('q')}"
        return self._made(word.lower(), text, columns, left.rows + right.rows, left, right)

    def set_operation(self, depth: int) -> Relation:
        left, right, columns, texts = self._alike(depth)
        word = self.dice.choice(["INTERSECT", "EXCEPT"]) + self.dice.choice(["", " ALL"])
        text = f"SELECT * FROM ({texts[0]} {word} {texts[1]}) {self.name('q')}"
        return self._made(word.lower(), text, columns, left.rows / 2, left, right)

    def distinct(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        texts, columns = self._computed(child, self.dice.randrange(1, 3))
        text = f"SELECT DISTINCT {', '.join(texts)} FROM {self._nested(child)}"
        return self._made("distinct", text, columns, child.rows / 2, child)

    def call(self, child: Relation) -> tuple[str, Kind]:
        """An aggregate of a relation, and the kind of its value."""
        column = self.dice.choice(child.columns)
        argument = self.scalar.of(child.columns, column.kind)
        function = self.dice.choice(
            ["count", "count", "sum", "sum", "min", "max", "avg", "count distinct", "sum distinct"]
        )
        where = ""
        if self.dice.random() < 0.2:
            where = f" FILTER (WHERE {self.scalar.condition(child.columns)})"
        kind = column.kind
        if function in ("min", "max"):
            return f"{function}({argument}){where}", kind
        if function == "avg" and kind in (Kind.INT, Kind.REAL):
            return f"avg({argument}){where}", Kind.RATIO
        if function.startswith("sum") and kind in SUMMABLE:
            distinct = "DISTINCT " if function == "sum distinct" else ""
            return f"CAST(sum({distinct}{argument}){where} AS {kind.sql})", kind
        if function == "count distinct":
            return f"count(DISTINCT {argument}){where}", Kind.INT
        argument = argument if self.dice.random() < 0.5 else "*"
        return f"count({argument}){where}", Kind.INT

    def _calls(self, child: Relation, count: int) -> tuple[list[str], list[Column]]:
        texts, columns = [], []
        for _ in range(count):
            call, kind = self.call(child)
            columns.append(self.column(kind))
            texts.append(f"{call} AS {columns[-1].name}")
        return texts, columns

    def aggregate(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        texts, columns = self._computed(child, self.dice.randrange(0, 3))
        groups = [text.rsplit(" AS ", 1)[0] for text in texts]
        calls, values = self._calls(child, self.dice.randrange(1, 4))
        text = f"SELECT {', '.join([*texts, *calls])} FROM {self._nested(child)}"
        operator = "aggregate"
        if groups:
            places = ", ".join(str(place + 1) for place in range(len(groups)))
            text += f" GROUP BY {places}"
            if self.dice.random() < 0.25:
                text += f" HAVING count(*) > {self.dice.randrange(0, 3)}"
                operator = "having"
        else:
            operator = "aggregate of all"
        rows = child.rows / 2 if groups else 1
        return self._made(operator, text, [*columns, *values], rows, child)

    def grouping_sets(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        grouped = self.dice.sample(child.columns, min(len(child.columns), 2))
        names = [column.name for column in grouped]
        columns = [self.column(column.kind) for column in grouped]
        shown = [f"{old} AS {new.name}" for old, new in zip(names, columns, strict=True)]
        calls, values = self._calls(child, self.dice.randrange(1, 3))
        sets = self.dice.choice(
            [
                f"ROLLUP ({', '.join(names)})",
                f"CUBE ({', '.join(names)})",
                f"GROUPING SETS (({names[0]}), ({', '.join(names)}))",
            ]
        )
        # Over no rows Spark has no grand total and DuckDB has one.
        text = (
            f"SELECT {', '.join([*shown, *calls])} FROM {self._nested(child)} GROUP BY {sets}"
            " HAVING count(*) > 0"
        )
        return self._made("grouping sets", text, [*columns, *values], child.rows, child)

    def window(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        made, texts = [], []
        for _ in range(self.dice.randrange(1, 3)):
            text, kind = self._window_call(child)
            made.append(self.column(kind))
            texts.append(f"{text} AS {made[-1].name}")
        text = f"SELECT *, {', '.join(texts)} FROM {self._nested(child)}"
        if self.dice.random() < 0.25 and made[-1].kind is Kind.INT:
            text = f"SELECT * FROM ({text}) {self.name('q')} WHERE {made[-1].name} <= 2"
        return self._made("window", text, [*child.columns, *made], child.rows, child)

    def _window_call(self, child: Relation) -> tuple[str, Kind]:
        columns = list(child.columns)
        by = self.dice.sample(columns, min(len(columns), self.dice.randrange(0, 3)))
        partition = f"PARTITION BY {', '.join(c.name for c in by)} " if by else ""
        total = order(self.dice, columns, total=True)
        some = order(self.dice, columns, total=False)
        rows = self.dice.choice(
            [
                "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
                "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            ]
        )
        over = {
            "total": f"OVER ({partition}{total})",
            "ties": f"OVER ({partition}{some})",
            "framed": f"OVER ({partition}{total} {rows})",
            "all": f"OVER ({partition.strip()})",
        }
        column = self.dice.choice(columns)
        function = self.dice.choice(
            ["row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value", "cume_dist",
             "sum", "count", "min", "max"]
        )  # fmt: skip
        match function:
            case "row_number":
                return f"CAST(row_number() {over['total']} AS BIGINT)", Kind.INT
            case "ntile":
                return f"CAST(ntile(2) {over['total']} AS BIGINT)", Kind.INT
            case "rank" | "dense_rank":
                return f"CAST({function}() {over['ties']} AS BIGINT)", Kind.INT
            case "cume_dist":
                return f"cume_dist() {over['ties']}", Kind.RATIO
            case "lag" | "lead":
                default = (
                    f", {self.scalar.literal(column.kind)}" if self.dice.random() < 0.5 else ""
                )
                distance = f", {self.dice.randrange(1, 3)}" + default
                return f"{function}({column.name}{distance}) {over['total']}", column.kind
            case "first_value":
                return f"first_value({column.name}) {over['framed']}", column.kind
        frame = over[self.dice.choice(["ties", "framed", "all"])]
        if function == "sum" and column.kind in SUMMABLE:
            return f"CAST(sum({column.name}) {frame} AS {column.kind.sql})", column.kind
        if function in ("min", "max"):
            return f"{function}({column.name}) {frame}", column.kind
        return f"count({column.name}) {frame}", Kind.INT

    def limit(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        return self._first(child, self.dice.randrange(1, 6), self.dice.choice([0, 0, 0, 2]))

    def _first(self, child: Relation, count: int, skipped: int = 0) -> Relation:
        offset = f" OFFSET {skipped}" if skipped else ""
        text = (
            f"SELECT * FROM {self._nested(child)} {order(self.dice, child.columns, total=True)}"
            f" LIMIT {count}{offset}"
        )
        return self._made("limit", text, child.columns, count, child)

    def explode(self, depth: int) -> Relation:
        """Rows of arrays, of empty ones and of none."""
        child = self.relation(depth - 1)
        column = self.dice.choice(child.columns)
        made = self.column(column.kind)
        elements = [self.scalar.of(child.columns, column.kind) for _ in range(2)]
        array = (
            f"CASE WHEN {self.scalar.condition(child.columns, 0)} THEN array({', '.join(elements)})"
        )
        array += f" WHEN {self.scalar.condition(child.columns, 0)} THEN array({elements[0]}) END"
        outer = self.dice.choice(["", "OUTER "])
        text = (
            f"SELECT * FROM {self._nested(child)} LATERAL VIEW {outer}explode({array})"
            f" {self.name('e')} AS {made.name}"
        )
        return self._made("explode", text, (*child.columns, made), child.rows * 1.5, child)

    def pivot(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        pivoted = self.dice.choice(child.columns)
        others = [column for column in child.columns if column is not pivoted]
        if not others:
            return self.distinct(depth)
        value = self.dice.choice(others)
        kept = [column for column in others if column is not value][:1]
        literals = sorted({self.scalar.literal(pivoted.kind) for _ in range(2)})
        made = [self.column(Kind.INT) for _ in literals]
        names = [
            f"{literal} AS {column.name}" for literal, column in zip(literals, made, strict=True)
        ]
        below = ", ".join(column.name for column in (*kept, pivoted, value))
        text = (
            f"SELECT * FROM (SELECT {below} FROM {self._nested(child)})"
            f" PIVOT (count({value.name}) FOR {pivoted.name} IN ({', '.join(names)}))"
        )
        return self._made("pivot", text, [*kept, *made], child.rows / 2, child)


def drawn(seed: int, depth: int, *, spark_only: bool = False) -> Relation:
    """The query of a seed."""
    return Generator(random.Random(seed), spark_only=spark_only).query(depth)
