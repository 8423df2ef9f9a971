"""The refresh operator ⊔ on the rows of an extent: updated by key, and padded anew by outer joins.

[GM06] has three refresh operators, for aggregate-change tables (5.2), for insertions into an outer
join (6.1) and for deletions from one (6.3, Algorithm 1). On an extent they are one. A row of □V is
matched by ≡_K, null-safe and one to one since K is a key, and the states of the part that changed are
added up (U); a row that dies is deleted (J₂), one without a match is inserted. Then every row of a kept
side that □V has met is padded if it has no partner left, and not padded if it has one: decided from
the rows that are there, all at once. Differs from Algorithm 1, which is sequential (set-wise, two
deleted rows each see the other and the padded row is lost) and which turns a deleted dangling row
into a row of nulls.
"""

from __future__ import annotations

from freshview.algebra.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    add,
    all_same,
    coalesce,
    conjunction,
    conjuncts,
    either,
    equal,
    integer,
    is_null,
    null,
)
from freshview.algebra.relations import (
    Aggregate,
    OuterJoin,
    Output,
    Project,
    Relation,
    Select,
    Semijoin,
    Union,
    keep,
    renaming,
)
from freshview.algebra.schema import COUNT, Attribute, Numbering
from freshview.change_table.extent import FALSE, Extent, Pad, Part
from freshview.delta.derivation import renamed, with_count
from freshview.delta.group_states import zero
from freshview.delta.states import consolidate


def updated(
    rows: Relation, change: Relation, part: Part, extent: Extent, new: Numbering
) -> Relation:
    """V ⊔ □V before padding: the part's states added up by key, dead rows left out."""
    columns = rows.attributes
    was, came = new.attribute("was", "boolean"), new.attribute("came", "boolean")
    fresh = {a: new.attribute(a.name, a.type) for a in columns}
    held = Project(rows, (*(keep(a) for a in columns), Output(was, TRUE)))
    arriving = Project(change, (*renaming(fresh.values(), columns), Output(came, TRUE)))
    on = all_same(extent.key, (fresh[a] for a in extent.key))
    joined = OuterJoin(held, arriving, on, True, True)
    own = frozenset(part.states)
    outputs = tuple(
        Output(a, _total(a, fresh[a]) if a in own else _as_it_is(a, fresh[a], was)) for a in columns
    )
    alive = Call("nonnegative", (Column(part.alive),), part.alive.type)
    dead = equal(alive, zero(part.alive))
    # A row that has no such part (it is padded, or of another operand) is none of its business.
    lives = Call("or", (is_null(Column(part.alive)), Call("not", (dead,), "boolean")), "boolean")
    return Select(Project(joined, outputs), lives)


def _total(old: Attribute, change: Attribute) -> Expression:
    """U's function f(v, □v) = v + □v; a row without the part, and without a change to it, keeps null."""
    none = zero(old)
    total = add(coalesce(Column(old), none), coalesce(Column(change), none), old.type)
    neither = Call("and", (is_null(Column(old)), is_null(Column(change))), "boolean")
    return either(neither, null(old.type), Call("cast", (total,), old.type))


def _as_it_is(old: Attribute, arriving: Attribute, was: Attribute) -> Expression:
    return either(Call("is not null", (Column(was),), "boolean"), Column(old), Column(arriving))


def padded_anew(
    rows: Relation, change: Relation, part: Part, pad: Pad, extent: Extent, new: Numbering
) -> Relation:
    """The rows with the padded ones of a kept side right again, where □V has met that side.

    A kept row that was met is padded iff no row is left in which it has a partner: 7b's second
    disjunct for insertions, Algorithm 1 for deletions.
    """
    columns = rows.attributes
    kept = tuple(a for a in columns if a not in pad.changing and a != pad.partner)
    keys = tuple(a for a in kept if a in frozenset(extent.key))
    met = Aggregate(_met(change, part, pad, extent), kept, ())
    partners = Select(rows, Call("and", (Column(pad.partner), Column(pad.kept)), "boolean"))
    others, fresh = renamed(partners, keys, new)
    alone = Semijoin(met, others, all_same(keys, fresh), anti=True)
    padding = tuple(
        keep(a) if a in kept else Output(a, FALSE if a == pad.partner else null(a.type))
        for a in columns
    )
    left = _without_padded(rows, met, keys, pad, new)
    return Union((left, Project(alone, padding)), columns)


def no_longer_padded(
    rows: Relation, change: Relation, part: Part, pad: Pad, extent: Extent, new: Numbering
) -> Relation:
    """The same for a □V of insertions: whoever was met has a partner now, so no other row is read.

    [GM06] 6.1: a row of □V meets the padded row of its kept side, and nothing else of V.
    """
    kept = frozenset(extent.key) - pad.changing - {pad.partner}
    keys = tuple(a for a in rows.attributes if a in kept)
    return _without_padded(rows, _met(change, part, pad, extent), keys, pad, new)


def _met(change: Relation, part: Part, pad: Pad, extent: Extent) -> Relation:
    """The rows of □V that may give a kept row its first partner or take its last one."""
    inner = (coalesce(Column(other.kept), FALSE) for other in extent.inner_pads(part, pad))
    none = (Call("not", (kept,), "boolean") for kept in inner)
    condition = conjunction((Column(pad.kept), *none))
    assert condition is not None
    return Select(change, condition)


def _without_padded(
    rows: Relation, met: Relation, keys: tuple[Attribute, ...], pad: Pad, new: Numbering
) -> Relation:
    """The rows but those that are padded and whose kept side was met."""
    touched, fresh = renamed(met, keys, new)
    stale = conjunction((pad.is_padded, *conjuncts(all_same(keys, fresh))))
    return Semijoin(rows, touched, stale, anti=True)


def with_delta(rows: Relation, delta: Relation) -> Relation:
    """(V ∸ ∇V) ⊎ ΔV, where a change table ended at a singularity point."""
    signed = with_count(rows, Output(COUNT, integer(1)))
    whole = consolidate(Union((signed, delta), (*rows.attributes, COUNT)))
    return Project(whole, tuple(keep(a) for a in rows.attributes))
