"""Relations: the nodes of a view's expression tree, with bag semantics.

A node checks itself when it is built: an expression over an attribute that its child lacks, or two
attributes of one id in one schema, never exist. ``Relation`` is the union of all node classes, so a
function that matches on it can be checked for completeness.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Column, Expression, references
from freshview.algebra.schema import COUNT, Attribute
from freshview.algebra.windows import Ordering, WindowOutput


class State(Enum):
    """Which instance of a table is read: any one, before the changes, or after them."""

    NOW = "now"
    PRE = "pre"
    POST = "post"


class MalformedRelation(AssertionError):
    """A node was built over attributes its child does not have: an error in freshview itself."""


@dataclass(frozen=True, slots=True)
class Output:
    """``expression AS attribute`` in a projection."""

    attribute: Attribute
    expression: Expression

    @property
    def is_kept(self) -> bool:
        """Whether the output is a column of the child, unchanged."""
        return isinstance(self.expression, Column) and self.expression.attribute == self.attribute


@dataclass(frozen=True, slots=True)
class AggregateOutput:
    """``call AS attribute`` in an aggregation."""

    attribute: Attribute
    call: AggregateCall


@dataclass(frozen=True, slots=True)
class Scan:
    """One occurrence of a table in one of its states; an attribute's name is the table's column.

    The terms of a delta read the same occurrence for different keys; ``term`` keeps them apart.
    """

    table: str
    attributes: tuple[Attribute, ...]
    state: State = State.NOW
    term: int = 0

    def __post_init__(self) -> None:
        _unique(self.attributes)


@dataclass(frozen=True, slots=True)
class Changes:
    """ΔR: the changed rows of one occurrence of a table, each with its signed count."""

    table: str
    columns: tuple[Attribute, ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return (*self.columns, COUNT)


@dataclass(frozen=True, slots=True)
class Given:
    """Rows that an earlier step of the same refresh has computed: a shared temporary, by its name."""

    name: str
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        _unique(self.attributes)


@dataclass(frozen=True, slots=True)
class Values:
    """A constant relation."""

    attributes: tuple[Attribute, ...]
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Select:
    """σ_predicate(child): the rows for which the predicate is true, not null and not false."""

    child: Relation
    predicate: Expression

    def __post_init__(self) -> None:
        _reads(self.child, self.predicate)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.child.attributes


@dataclass(frozen=True, slots=True)
class Project:
    """Π_outputs(child): one row out for each row in; duplicates stay."""

    child: Relation
    outputs: tuple[Output, ...]
    attributes: tuple[Attribute, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, tuple(output.attribute for output in self.outputs))
        _unique(self.attributes)
        _reads(self.child, *(output.expression for output in self.outputs))


@dataclass(frozen=True, slots=True)
class Join:
    """left ⋈_on right; without a condition the product left × right."""

    left: Relation
    right: Relation
    on: Expression | None = None
    attributes: tuple[Attribute, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, self.left.attributes + self.right.attributes)
        _reads_both(self.left, self.right, self.on)


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """left ⟕ / ⟖ / ⟗ right: rows without a partner are kept, padded with nulls."""

    left: Relation
    right: Relation
    on: Expression | None
    keeps_left: bool
    keeps_right: bool
    attributes: tuple[Attribute, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, self.left.attributes + self.right.attributes)
        _reads_both(self.left, self.right, self.on)


@dataclass(frozen=True, slots=True)
class Semijoin:
    """left ⋉_on right, or with ``anti`` left ▷_on right: left rows with (without) a partner."""

    left: Relation
    right: Relation
    on: Expression | None
    anti: bool = False

    def __post_init__(self) -> None:
        _reads_both(self.left, self.right, self.on)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.left.attributes


@dataclass(frozen=True, slots=True)
class MarkJoin:
    """Each left row with one more attribute that says whether it has a partner (EXISTS in an OR)."""

    left: Relation
    right: Relation
    on: Expression | None
    mark: Attribute

    def __post_init__(self) -> None:
        _reads_both(self.left, self.right, self.on)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return (*self.left.attributes, self.mark)


@dataclass(frozen=True, slots=True)
class Intersection:
    """left ∩ right by position, nulls equal: each row once, or with ``all`` min(a, b) times."""

    left: Relation
    right: Relation
    all: bool

    def __post_init__(self) -> None:
        _same_width(self.left, self.right)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.left.attributes


@dataclass(frozen=True, slots=True)
class Difference:
    """left − right by position, nulls equal: each row once, or with ``all`` (∸) a − b times."""

    left: Relation
    right: Relation
    all: bool

    def __post_init__(self) -> None:
        _same_width(self.left, self.right)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.left.attributes


@dataclass(frozen=True, slots=True)
class Aggregate:
    """π_{group, aggregates}(child). Without group attributes there is always exactly one row."""

    child: Relation
    group: tuple[Attribute, ...]
    aggregates: tuple[AggregateOutput, ...]
    attributes: tuple[Attribute, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, self.group + tuple(output.attribute for output in self.aggregates))
        arguments = (a for output in self.aggregates for a in output.call.arguments)
        _reads(self.child, *(Column(attribute) for attribute in self.group), *arguments)
        _unique(self.attributes)


@dataclass(frozen=True, slots=True)
class Union:
    """children₁ ⊎ … ⊎ childrenₙ by position, duplicates kept."""

    children: tuple[Relation, ...]
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        _unique(self.attributes)
        for child in self.children:
            if len(child.attributes) != len(self.attributes):
                raise MalformedRelation(f"⊎ of {len(self.attributes)} and {len(child.attributes)}")


@dataclass(frozen=True, slots=True)
class Repeat:
    """Each row of the child as often as ``times`` says; never where it is null or not positive."""

    child: Relation
    times: Expression

    def __post_init__(self) -> None:
        _reads(self.child, self.times)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.child.attributes


@dataclass(frozen=True, slots=True)
class Window:
    """The child with window functions appended, all over one PARTITION BY and ORDER BY.

    Rows that tie in the order are taken by ``ties``: SQL leaves open in which order they come, and a
    view needs one certain answer. ``ties`` is empty where no function depends on it.
    """

    child: Relation
    outputs: tuple[WindowOutput, ...]
    partition: tuple[Expression, ...]
    order: tuple[Ordering, ...]
    ties: tuple[Ordering, ...] = ()

    def __post_init__(self) -> None:
        arguments = (a for output in self.outputs for a in output.call.arguments)
        ordered = (key.expression for key in (*self.order, *self.ties))
        _reads(self.child, *self.partition, *ordered, *arguments)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.child.attributes + tuple(output.attribute for output in self.outputs)


@dataclass(frozen=True, slots=True)
class Expand:
    """Each row once per projection: GROUPING SETS, ROLLUP and CUBE below their aggregate."""

    child: Relation
    projections: tuple[tuple[Expression, ...], ...]
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        _reads(self.child, *(one for projection in self.projections for one in projection))


@dataclass(frozen=True, slots=True)
class Generate:
    """Each row joined with the rows its generator makes of it (EXPLODE, LATERAL VIEW)."""

    child: Relation
    generator: Expression
    outer: bool
    generated: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        _reads(self.child, self.generator)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.child.attributes + self.generated


@dataclass(frozen=True, slots=True)
class Sort:
    """The child in an order; as a bag, the child itself."""

    child: Relation
    order: tuple[Ordering, ...]

    def __post_init__(self) -> None:
        _reads(self.child, *(key.expression for key in self.order))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.child.attributes


@dataclass(frozen=True, slots=True)
class Limit:
    """The first ``count`` rows of the child after skipping ``offset``; None means all the rest.

    Which rows are first is said by ``order``. It goes on with every column of the query, because SQL
    leaves open which of the rows that tie comes first, and a view needs one certain answer.
    """

    child: Relation
    count: int | None
    offset: int
    order: tuple[Ordering, ...]

    def __post_init__(self) -> None:
        _reads(self.child, *(key.expression for key in self.order))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.child.attributes


@dataclass(frozen=True, slots=True)
class Previous:
    """The rows that the level before has made, inside the step of a recursion."""

    loop: int
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        _unique(self.attributes)


@dataclass(frozen=True, slots=True)
class Recursion:
    """R₀ ⊎ R₁ ⊎ …, R₀ the anchor, Rᵢ₊₁ the step over Rᵢ, until a level is empty (WITH RECURSIVE).

    Leaves ``Previous`` of the same ``loop`` stand for Rᵢ inside the step. More levels than ``levels``
    are an error; None leaves that to Spark's setting.
    """

    anchor: Relation
    step: Relation
    loop: int
    levels: int | None
    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        _unique(self.attributes)
        for operand in (self.anchor, self.step):
            if len(operand.attributes) != len(self.attributes):
                raise MalformedRelation(
                    f"a level of {len(operand.attributes)} columns in {len(self.attributes)}"
                )


Leaf = Scan | Changes | Given | Values | Previous
Conditional = Join | OuterJoin | Semijoin | MarkJoin
SetOperation = Intersection | Difference
Unary = Select | Project | Aggregate | Repeat | Window | Expand | Generate | Sort | Limit
Relation = Leaf | Conditional | SetOperation | Unary | Union | Recursion


def keep(attribute: Attribute) -> Output:
    """The output that passes an attribute through."""
    return Output(attribute, Column(attribute))


def _unique(attributes: tuple[Attribute, ...]) -> None:
    if len({attribute.id for attribute in attributes}) != len(attributes):
        raise MalformedRelation(f"two attributes of one id in {[str(a) for a in attributes]}")


def _same_width(left: Relation, right: Relation) -> None:
    if len(left.attributes) != len(right.attributes):
        raise MalformedRelation(f"rows of {len(left.attributes)} and {len(right.attributes)}")


def renaming(new: Iterable[Attribute], old: Iterable[Attribute]) -> tuple[Output, ...]:
    """The outputs that pass attributes through under other ones."""
    return tuple(Output(n, Column(o)) for n, o in zip(new, old, strict=True))


def _set(node: Project | Join | OuterJoin | Aggregate, attributes: tuple[Attribute, ...]) -> None:
    """What a node yields is asked for again and again, so it is put together once."""
    object.__setattr__(node, "attributes", attributes)


def _reads(child: Relation, *expressions: Expression) -> None:
    known = frozenset(child.attributes)
    for expression in expressions:
        missing = references(expression) - known
        if missing:
            have = [str(a) for a in child.attributes]
            raise MalformedRelation(f"{[str(a) for a in missing]} is not among {have}")


def _reads_both(left: Relation, right: Relation, on: Expression | None) -> None:
    _unique(left.attributes + right.attributes)
    if on is not None:
        missing = references(on) - set(left.attributes) - set(right.attributes)
        if missing:
            raise MalformedRelation(f"join condition reads {[str(a) for a in missing]}")
