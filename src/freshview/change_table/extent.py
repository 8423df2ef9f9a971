"""The extent of a view whose rows hold aggregates: τ(V), rows with what it takes to change them.

[B07] Definition 5.2 and Table 5.1: every row of a view carries the number of its causes, added at the
conversion points and combined above them. Here a row is made of parts. A part is an aggregate (a
conversion point: key G, states) or plain rows (key: the whole row, state: its copies); above the parts
are σ, Π, ×, ⋈, ⊎ and outer joins. A row exists while every part that it has is alive. One part changes
at a time, as a change table: the same columns, its own states as changes, all others as they are.

The operators above the parts may read keys only. That is what [GM06] Table 4 asks for: Attrs(p) ⊆ G in
row 1, Attrs(J) ⊆ G in rows 4 and 7. Row 2 asks for more, that Π keeps the attributes of θ; keys that a
view does not show are stored hidden instead. A node where the conditions do not hold is a singularity
point for the parts whose change tables cannot pass it: when one of these changes, insertions and
deletions of the extent are derived; when another one does, its change table passes all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from freshview.algebra.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    coalesce,
    conjuncts,
    either,
    equality,
    null,
    references,
    substitute,
)
from freshview.algebra.relations import (
    Aggregate,
    Given,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Select,
    Sort,
    Union,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.change_table.singularity import singularity
from freshview.counting.canonical import normal
from freshview.delta.aggregate_states import AggregateStates, aggregate_states
from freshview.reasons import NoRule, Reason

FALSE = Literal(False, "boolean", "false")


@dataclass(frozen=True, slots=True)
class PlainPart:
    """Rows without states of their own: δ is derived from what they are defined by."""

    leaf: Given
    relation: Relation
    copies: Attribute

    @property
    def key(self) -> tuple[Attribute, ...]:
        return self.relation.attributes

    @property
    def states(self) -> tuple[Attribute, ...]:
        return (self.copies,)

    @property
    def alive(self) -> Attribute:
        return self.copies

    @property
    def source(self) -> Relation:
        """What its tables are read by."""
        return self.relation


@dataclass(frozen=True, slots=True)
class AggregatePart:
    """An aggregate, a conversion point: its groups with their states."""

    leaf: Given
    aggregate: Aggregate
    kept: AggregateStates
    child: Relation

    @property
    def key(self) -> tuple[Attribute, ...]:
        return self.aggregate.group

    @property
    def states(self) -> tuple[Attribute, ...]:
        return self.kept.additive

    @property
    def alive(self) -> Attribute:
        return self.kept.rows

    @property
    def source(self) -> Relation:
        return self.child


Part = PlainPart | AggregatePart


@dataclass(frozen=True, slots=True)
class Pad:
    """An outer join above some parts: a row of ``kept`` attributes without a partner is padded.

    ``changing`` are the attributes of the other side, null in a padded row, with ``partner`` false.
    ``by`` is a key of the kept side, the one that is joined by if there is one: padded rows are found
    by it.
    """

    changing: frozenset[Attribute]
    partner: Attribute
    kept: Attribute
    by: Attribute

    @property
    def is_padded(self) -> Expression:
        """Whether a row is there without a partner."""
        alone = Call("not", (Column(self.partner),), "boolean")
        return Call("and", (Column(self.kept), alone), "boolean")


@dataclass(frozen=True, slots=True)
class Extent:
    """How the rows of an expression are made of parts.

    ``frame`` is σ, ⋈, ⊎ and outer joins over the leaves of the parts; ``values`` gives the
    expression's attributes in terms of the frame's; ``singular`` the singularity points and the leaf
    of the part whose change tables end there.
    """

    frame: Relation
    parts: tuple[Part, ...]
    values: tuple[Output, ...]
    marks: tuple[Attribute, ...] = ()
    pads: tuple[Pad, ...] = ()
    singular: tuple[tuple[Given, Reason], ...] = ()

    @property
    def key(self) -> tuple[Attribute, ...]:
        """What identifies a row: which parts it has, and their keys."""
        return self.marks + tuple(a for part in self.parts for a in part.key)

    @property
    def states(self) -> tuple[Attribute, ...]:
        return tuple(a for part in self.parts for a in part.states)

    def value_of(self) -> dict[Attribute, Expression]:
        return {output.attribute: output.expression for output in self.values}

    def pads_of(self, part: Part) -> tuple[Pad, ...]:
        """The outer joins that keep another side than the one this part is on, innermost first."""
        return tuple(pad for pad in self.pads if frozenset(part.states) <= pad.changing)

    def inner_pads(self, part: Part, pad: Pad) -> tuple[Pad, ...]:
        """The outer joins between a part and a pad that keep another side.

        A row of such a side is there, padded or not, whatever becomes of the part; so is what it
        meets further up, since what reads padded columns is a singularity point for the part.
        """
        of_part = self.pads_of(part)
        return of_part[: of_part.index(pad)]

    def singularity(self, part: Part) -> Reason | None:
        """Why the change tables of a part do not reach the top, if they do not."""
        return next((reason for leaf, reason in self.singular if leaf == part.leaf), None)


def extent(relation: Relation, new: Numbering) -> Extent:
    """The extent of an expression."""
    match relation:
        case Select(child, predicate) if is_structured(child):
            below = extent(child, new)
            condition, singular = _condition(below, predicate, relation)
            assert condition is not None
            return replace(
                below, frame=Select(below.frame, condition), singular=below.singular + singular
            )
        case Project(child, outputs) if is_structured(child):
            below = extent(child, new)
            values = below.value_of()
            shown = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
            return replace(below, values=shown)
        case Sort(child, _):
            return extent(child, new)
        case Join(left, right, on) if is_structured(relation):
            ours, theirs = extent(left, new), extent(right, new)
            both = _beside(ours, theirs)
            condition, singular = _condition(both, on, relation)
            frame = Join(ours.frame, theirs.frame, condition)
            return replace(both, frame=frame, singular=both.singular + singular)
        case OuterJoin():
            return _outer(relation, new)
        case Union() if is_structured(relation):
            return _tagged(relation, new)
        case Aggregate(child, group, _) if group:
            try:
                return _grouped(relation, new)
            except NoRule:
                return _plain(relation, new)
        case _:
            return _plain(relation, new)


def is_structured(relation: Relation) -> bool:
    """Whether an aggregate or an outer join can be reached from the top through σ, Π, ⋈ and ⊎."""
    match relation:
        case OuterJoin():
            return True
        case Aggregate(_, group, _):
            return bool(group)
        case Select(child, _) | Project(child, _) | Sort(child, _):
            return is_structured(child)
        case Join(left, right, _):
            return is_structured(left) or is_structured(right)
        case Union(operands, _):
            return any(is_structured(operand) for operand in operands)
        case _:
            return False


def _grouped(node: Aggregate, new: Numbering) -> Extent:
    """A conversion point. NoRule for an aggregate that no additive states keep."""
    states = aggregate_states(node, new)
    if states.late:
        raise NoRule(
            singularity(
                "LATE_UPDATE",
                node,
                "a late update of MIN, MAX or a sum of doubles needs the groups themselves in the"
                " view",
            )
        )
    part = AggregatePart(_leaf(node.group + states.additive, new), node, states, normal(node.child))
    values = [Output(o.attribute, states.value(o.call)) for o in node.aggregates]
    return Extent(part.leaf, (part,), (*(keep(a) for a in node.group), *values))


def _plain(relation: Relation, new: Numbering) -> Extent:
    copies = new.attribute("copies", "bigint", nullable=False)
    part = PlainPart(_leaf((*relation.attributes, copies), new), normal(relation), copies)
    return Extent(part.leaf, (part,), tuple(keep(a) for a in relation.attributes))


def _leaf(columns: tuple[Attribute, ...], new: Numbering) -> Given:
    return Given(f"part{new.attribute('part', 'void').id}", columns)


Singular = tuple[tuple[Given, Reason], ...]


def _condition(
    extent: Extent, condition: Expression | None, node: Relation
) -> tuple[Expression | None, Singular]:
    """A condition in terms of the frame, and the parts whose change tables it does not let through."""
    if condition is None:
        return None, ()
    value = substitute(condition, extent.value_of())
    read = references(value)
    found: list[tuple[Given, Reason]] = []
    for part in extent.parts:
        updated = sorted(a.name for a in read & frozenset(part.states))
        padding = [p for p in extent.pads if read & (p.changing | {p.partner}) and _is_in(part, p)]
        if updated:
            why = (
                f"the condition reads {', '.join(updated)}, which the change table updates; it passes"
                " a selection or a join only over G ([GM06] Table 4, rows 1, 4 and 7)"
            )
            found.append((part.leaf, singularity("READS_UPDATED_COLUMN", node, why)))
        elif padding:
            why = (
                "the condition reads columns that are null where an outer join below pads a row, so"
                " it tells padded rows from others ([GM06] Theorem 3 and its erratum)"
            )
            found.append((part.leaf, singularity("READS_PADDED_COLUMN", node, why)))
    return value, tuple(found)


def _is_in(part: Part, pad: Pad) -> bool:
    return frozenset(part.states) <= pad.changing


def _beside(left: Extent, right: Extent) -> Extent:
    """Two extents whose rows are put side by side; the frame is to be made."""
    return Extent(
        left.frame,
        left.parts + right.parts,
        left.values + right.values,
        left.marks + right.marks,
        left.pads + right.pads,
        left.singular + right.singular,
    )


def _outer(node: OuterJoin, new: Numbering) -> Extent:
    """⟕, ⟖, ⟗: each side marks its rows, so that a row of nulls is never taken for a padded one."""
    left, right = extent(node.left, new), extent(node.right, new)
    both = _beside(left, right)
    on, singular = _condition(both, node.on, node)
    here = new.attribute("has_left", "boolean", nullable=False)
    there = new.attribute("has_right", "boolean", nullable=False)
    ours, theirs = _marked(left.frame, here), _marked(right.frame, there)
    frame = OuterJoin(ours, theirs, on, node.keeps_left, node.keeps_right)
    surely = tuple(
        Output(a, coalesce(Column(a), FALSE)) if a in (here, there) else keep(a)
        for a in frame.attributes
    )
    pads = both.pads
    if node.keeps_right:
        pads += (Pad(frozenset(left.frame.attributes), here, there, _found_by(on, right, there)),)
    if node.keeps_left:
        pads += (Pad(frozenset(right.frame.attributes), there, here, _found_by(on, left, here)),)
    ours_shown = _padded_values(left, here) if node.keeps_right else left.values
    theirs_shown = _padded_values(right, there) if node.keeps_left else right.values
    return replace(
        both,
        frame=Project(frame, surely),
        values=ours_shown + theirs_shown,
        marks=(*both.marks, here, there),
        pads=pads,
        singular=both.singular + singular,
    )


def _padded_values(side: Extent, mark: Attribute) -> tuple[Output, ...]:
    """What a side shows where it may be padded: a value that is computed is null there as well."""
    return tuple(
        output
        if isinstance(output.expression, Column)
        else Output(
            output.attribute,
            either(Column(mark), output.expression, null(output.expression.type)),
        )
        for output in side.values
    )


def _found_by(on: Expression | None, kept: Extent, mark: Attribute) -> Attribute:
    """The key of a side by which its rows are found best: one that is joined by, or any."""
    keys = [a for a in kept.key if a not in kept.marks]
    joined = [a for c in conjuncts(on) for a in equality(c) or () if a in keys]
    return next(iter(joined or keys), mark)


def _marked(frame: Relation, mark: Attribute) -> Relation:
    return Project(frame, (*(keep(a) for a in frame.attributes), Output(mark, TRUE)))


def _tagged(node: Union, new: Numbering) -> Extent:
    """⊎ with each row tagged by its operand, so that neither operand is queried for the other's.

    [GM06] 5.3 and 7: the tagged form of row 5. The columns of the other operands are null.
    """
    operands = [extent(operand, new) for operand in node.children]
    tag = new.attribute("operand", "int", nullable=False)
    columns = tuple(a for operand in operands for a in operand.frame.attributes)
    frames, values = [], []
    for place, operand in enumerate(operands):
        own = frozenset(operand.frame.attributes)
        outputs = tuple(keep(a) if a in own else Output(a, null(a.type)) for a in columns)
        frames.append(Project(operand.frame, (*outputs, Output(tag, _number(place)))))
    for place, attribute in enumerate(node.attributes):
        value: Expression = operands[-1].values[place].expression
        for number in reversed(range(len(operands) - 1)):
            is_this = Call("=", (Column(tag), _number(number)), "boolean")
            value = either(is_this, operands[number].values[place].expression, value)
        values.append(Output(attribute, value))
    return Extent(
        Union(tuple(frames), (*columns, tag)),
        tuple(part for operand in operands for part in operand.parts),
        tuple(values),
        (*(a for operand in operands for a in operand.marks), tag),
        tuple(pad for operand in operands for pad in operand.pads),
        tuple(point for operand in operands for point in operand.singular),
    )


def _number(value: int) -> Literal:
    return Literal(value, "int", str(value))
