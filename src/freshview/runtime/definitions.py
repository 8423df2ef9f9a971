"""From a stored definition to a strategy: Spark analyzes the query over stand-ins of the sources."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from freshview.algebra.clock import is_clock
from freshview.algebra.relations import Relation
from freshview.algebra.schema import COUNT_NAME, Attribute
from freshview.errors import (
    DefinitionChanged,
    DefinitionRejected,
    DefinitionUnavailable,
    InvalidColumn,
    InvalidColumnType,
    SettingsDiffer,
    SourceSchemaChanged,
    StrictImpossible,
    TableMissing,
    TableUnreadable,
    TechniqueNotApplicable,
    UnknownTechnique,
    ViewNotMaintainable,
)
from freshview.frontend.catalyst import (
    COPIED_SETTINGS,
    definition_session,
    import_dataframe,
    import_sql,
    stand_in,
)
from freshview.frontend.clock_plans import at_moment
from freshview.frontend.query_text import QueryText, query_text
from freshview.frontend.reasons import clock_refusals, refusals
from freshview.planner.kept_columns import is_storable
from freshview.planner.strategy import Strategy
from freshview.planner.techniques import WANTED, strategy
from freshview.reasons import Reason
from freshview.runtime.catalog import Catalog, Entry, Policy, ViewEntry
from freshview.runtime.commit import SourceVersion
from freshview.runtime.named_tables import session_with
from freshview.runtime.sources import Sources
from freshview.storage.interface import picked

if TYPE_CHECKING:
    from freshview.runtime.warehouse import Warehouse

TableReader = Callable[[str], DataFrame]
ViewFunction = Callable[..., DataFrame]
Versions = Mapping[str, SourceVersion]
Schemas = Mapping[str, StructType]

reading: ContextVar[TableReader | None] = ContextVar("reading", default=None)
"""How ``Warehouse.table`` reads while a view's function runs: stand-ins, or pinned versions."""

_NOT_IN_DELTA = set(" ,;{}()\n\t=")


@contextmanager
def tables_read_by(reader: TableReader) -> Iterator[None]:
    token = reading.set(reader)
    try:
        yield
    finally:
        reading.reset(token)


class Definitions:
    """The strategies of a warehouse's views, analyzed once per process and definition."""

    def __init__(
        self, spark: Callable[[], SparkSession], catalog: Catalog, sources: Sources
    ) -> None:
        self._spark = spark
        self._catalog = catalog
        self._sources = sources
        self._session: SparkSession | None = None
        self._settings: dict[str, str] = {}
        self._stand_ins: dict[str, str] = {}
        self._strategies: dict[str, tuple[tuple[object, ...], Strategy]] = {}
        self.functions: dict[str, ViewFunction] = {}

    def strategy(
        self, entry: ViewEntry, warehouse: Warehouse, vector: Versions | None = None
    ) -> Strategy:
        """The strategy of a stored view over versions of its sources, the newest ones unless told.

        Analyzed again when the schema of a source is another one, or the function.
        """
        schemas = self._schemas(entry.sources, vector)
        read = [schema.json() for schema in schemas.values()]
        stored = (self.functions.get(entry.name), entry.wanted, *read)
        self._check_settings(entry)
        cached = self._strategies.get(entry.id)
        if cached is not None and cached[0] == stored:
            return cached[1]
        made = self._analyzed(entry, warehouse, schemas)
        self._strategies[entry.id] = (stored, made)
        return made

    def like_analyzed(self, names: Iterable[str]) -> Callable[[Versions], bool]:
        """Whether sources at some versions have the schemas over which a view was just analyzed."""
        analyzed = {name: self._stand_ins[name] for name in names}

        def are_alike(vector: Versions) -> bool:
            now = self._schemas(analyzed, vector)
            return all(now[name].json() == schema for name, schema in analyzed.items())

        return are_alike

    def _analyzed(self, entry: ViewEntry, warehouse: Warehouse, schemas: Schemas) -> Strategy:
        """The strategy, once it is sure that the sources still have what the view is made of."""
        session = self._session_of(entry, schemas)
        try:
            if entry.sql is not None:
                made = self.from_sql(entry.name, entry.sql, session, wanted=entry.wanted)
            else:
                function = self.function(entry)
                made = self.from_function(
                    entry.name, function, warehouse, session, wanted=entry.wanted
                )
        except DefinitionRejected as rejected:
            raise self._unfit(entry, schemas, rejected.why) from rejected
        columns = tuple(attribute.name for attribute in made.visible)
        if columns != entry.columns:
            had, has = ", ".join(entry.columns), ", ".join(columns)
            raise self._unfit(entry, schemas, f"it has the columns {had} and would have {has}")
        if made.sources != entry.sources:
            had, has = ", ".join(entry.sources), ", ".join(made.sources)
            raise self._unfit(entry, schemas, f"it reads {had} and would read {has}")
        return made

    @staticmethod
    def _unfit(
        entry: ViewEntry, schemas: Schemas, reason: str
    ) -> SourceSchemaChanged | DefinitionChanged:
        """What keeps a stored definition from being the view that it was."""
        for name in entry.sources:
            missing = set(entry.source_columns[name]) - set(schemas[name].names)
            if missing:
                change = f"it has no column {', '.join(sorted(missing))} any more"
                return SourceSchemaChanged(
                    name=entry.name, table=name, change=change, reason=reason
                )
        if entry.function is not None:
            return DefinitionChanged(name=entry.name, function=entry.function, reason=reason)
        return SourceSchemaChanged(
            name=entry.name,
            table=", ".join(entry.sources),
            change="a column has another type",
            reason=reason,
        )

    def from_sql(
        self, name: str, text: str, session: SparkSession | None = None, wanted: str = "auto"
    ) -> Strategy:
        session = session or self._ready_session()
        with _rejections(name):
            text.encode()
            relation = import_sql(session, text)
        return _checked(name, relation, wanted)

    def tried(self, definitions: Sequence[tuple[str, str]], wanted: str) -> tuple[Strategy, ...]:
        """The strategies that views would have if they were defined one after the other.

        Each may read those before it; ``wanted`` is the technique of the last. Nothing is made.
        """
        session, made = self._ready_session(), list[Strategy]()
        *first, (name, query) = definitions
        try:
            for part, text in first:
                made.append(self.from_sql(part, text, session))
                stand_in(session, part, session.sql(text).schema).createOrReplaceTempView(part)
            made.append(self.from_sql(name, query, session, wanted))
        finally:
            for part, _ in first[: len(made)]:
                session.catalog.dropTempView(part)
        return tuple(made)

    def shown(self, name: str, query: str) -> tuple[Attribute, ...]:
        """The columns of a query, as they are before anything is asked of them."""
        with _rejections(name):
            return import_sql(self._ready_session(), query).attributes

    def written(self, query: str) -> QueryText:
        """Where the queries inside of a query are."""
        with _rejections(""):
            return query_text(self._ready_session(), query)

    def from_function(
        self,
        name: str,
        function: ViewFunction,
        warehouse: Warehouse,
        session: SparkSession | None = None,
        wanted: str = "auto",
    ) -> Strategy:
        ready = session or self._ready_session()

        def read(table: str) -> DataFrame:
            self._catalog.get(table)
            return ready.table(table)

        with _rejections(name), tables_read_by(read):
            relation = import_dataframe(call(function, warehouse))
        return _checked(name, relation, wanted)

    def from_function_again(
        self, entry: ViewEntry, function: ViewFunction, warehouse: Warehouse
    ) -> Strategy:
        """What a function defines over the columns that its view knows, or else over all."""
        with suppress(DefinitionRejected, TableMissing, TableUnreadable):
            session = self._session_of(entry, self._schemas(entry.sources, None))
            return self.from_function(entry.name, function, warehouse, session, wanted=entry.wanted)
        return self.from_function(entry.name, function, warehouse, wanted=entry.wanted)

    def evaluated_at(
        self, entry: ViewEntry, versions: Mapping[str, int], warehouse: Warehouse
    ) -> DataFrame:
        """The definition itself, not our algebra of it, over pinned versions and at their moment."""

        def read(table: str) -> DataFrame:
            held = self._sources.read(table, versions[table])
            known = entry.source_columns[table]
            return picked(held, [column for column in known if column in held.columns])

        clocks = {name: version for name, version in versions.items() if is_clock(name)}
        if entry.sql is None:
            with tables_read_by(read):
                return at_moment(call(self.function(entry), warehouse), clocks)
        named = {name: read(name) for name in entry.sources}
        session = session_with(self._spark(), named, entry.settings)
        return at_moment(session.sql(entry.sql), clocks)

    def _check_settings(self, entry: ViewEntry) -> None:
        """The session must understand the query as the one did that defined the view."""
        now = settings_of(self._spark(), tuple(entry.settings))
        for setting, value in entry.settings.items():
            if now.get(setting) != value:
                raise SettingsDiffer(
                    name=entry.name, setting=setting, defined=value, found=now.get(setting)
                )

    def function(self, entry: ViewEntry) -> ViewFunction:
        """The Python function of a view: registered in this process, or imported by its name."""
        if entry.name in self.functions:
            return self.functions[entry.name]
        assert entry.function is not None
        module, _, name = entry.function.partition(":")
        reason = "it was defined interactively, so no other process can import it"
        if module != "__main__" and "<" not in name:
            try:
                found: object = importlib.import_module(module)
                for part in name.split("."):
                    found = getattr(found, part)
            except (ImportError, AttributeError) as error:
                reason = str(error)
            else:
                if entry.name in self.functions:
                    return self.functions[entry.name]
                if callable(found):
                    return found
        raise DefinitionUnavailable(name=entry.name, function=entry.function, reason=reason)

    def _ready_session(self) -> SparkSession:
        """The definition session, with a stand-in for every table and view as it is now."""
        settings = settings_of(self._spark(), COPIED_SETTINGS)
        if self._session is None or self._settings != settings:
            self._session = definition_session(self._spark(), {})
            self._settings, self._stand_ins = settings, {}
        schemas = {}
        for entry in self._catalog:
            with suppress(
                TableMissing, TableUnreadable
            ):  # it stops those who read it, and nobody else
                schemas[entry.name] = self._schema(entry.name)
        for name in set(self._stand_ins) - set(schemas):
            self._session.catalog.dropTempView(name)
            del self._stand_ins[name]
        for name, schema in schemas.items():
            if self._stand_ins.get(name) != schema.json():
                stand_in(self._session, name, schema).createOrReplaceTempView(name)
                self._stand_ins[name] = schema.json()
        return self._session

    def _session_of(self, entry: ViewEntry, schemas: Schemas) -> SparkSession:
        """A session in which the sources have the columns that they had when the view was defined.

        So `SELECT *` stays what it was when a column is added or put in another place.
        """
        known = {
            name: StructType([schema[c] for c in entry.source_columns[name] if c in schema.names])
            for name, schema in schemas.items()
        }
        ready = self._ready_session()
        if all(self._stand_ins.get(name) == schema.json() for name, schema in known.items()):
            return ready
        return definition_session(self._spark(), known)

    def source_columns(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The columns of sources over which a view was just analyzed."""
        columns = {
            name: tuple(StructType.fromJson(json.loads(self._stand_ins[name])).names)
            for name in names
        }
        for name, held in columns.items():
            if COUNT_NAME in held:
                reason = "freshview counts the rows of a change in a column of this name"
                raise InvalidColumn(name=name, column=COUNT_NAME, reason=reason)
        return columns

    def _schemas(self, names: Iterable[str], vector: Versions | None) -> Schemas:
        """The schemas of sources at these versions, or as they are now."""
        if vector is None:
            return {name: self._schema(name) for name in names}
        return {name: self._schema(name, vector[name].version) for name in names}

    def _schema(self, name: str, version: int | None = None) -> StructType:
        entry: Entry = self._catalog.get(name)
        at = self._sources.latest(name) if version is None else version
        state = self._sources.state(name, at)
        schema = StructType.fromJson(json.loads(state.schema_json))
        if isinstance(entry, ViewEntry):
            return StructType([schema[column] for column in entry.columns])
        return schema


def call(function: ViewFunction, warehouse: Warehouse) -> DataFrame:
    """The DataFrame of a view function, which takes the warehouse or nothing."""
    takes = len(inspect.signature(function).parameters)
    return function(warehouse) if takes else function()


def function_name(function: ViewFunction) -> str:
    return f"{function.__module__}:{function.__qualname__}"


@contextmanager
def _rejections(name: str) -> Iterator[None]:
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise DefinitionRejected(name=name, reason=_message(error)) from error
    except UnicodeEncodeError as error:
        reason = f"character {error.start + 1} is half of one, which no text in UTF-8 holds"
        raise DefinitionRejected(name=name, reason=reason) from error
    except (Py4JJavaError, RecursionError) as error:
        if not is_too_deep(error):
            raise
        reason = "it is nested too deeply to be read"
        raise DefinitionRejected(name=name, reason=reason) from error


def is_too_deep(error: Exception) -> bool:
    """Whether a stack was too small for a query, in Python or in the JVM."""
    return isinstance(error, RecursionError) or "java.lang.StackOverflowError" in str(error)


def _message(error: PySparkException) -> str:
    text = error.getMessage() or str(error)
    return text.split(";\n")[0].strip().replace("\n", " ")


def wanted_technique(name: str) -> str:
    """The name of a technique as it is stored; UnknownTechnique if there is none."""
    lowered = str(name).lower()
    if lowered not in WANTED:
        raise UnknownTechnique(technique=name, known=", ".join(WANTED))
    return lowered


def check_applicable(name: str, wanted: str, made: Strategy) -> None:
    """Raise TechniqueNotApplicable if the view cannot be kept by what was asked for."""
    if wanted != "auto" and made.reason is not None:
        raise TechniqueNotApplicable(
            name=name,
            technique=wanted,
            subject=made.reason.subject,
            reason=made.reason.code,
            why=made.reason.why,
            do=made.reason.do,
        )


def check_strict(name: str, policy: Policy, made: Strategy) -> None:
    """Raise StrictImpossible if a view that may not be recomputed cannot be kept otherwise."""
    if policy is Policy.STRICT and made.reason is not None:
        raise StrictImpossible(
            name=name,
            subject=made.reason.subject,
            reason=made.reason.code,
            why=made.reason.why,
            do=made.reason.do,
        )


def _checked(name: str, relation: Relation, wanted: str) -> Strategy:
    _check_maintainable(name, refusals(relation))
    check_columns(name, [attribute.name for attribute in relation.attributes])
    no_types = all(attribute.type == "void" for attribute in relation.attributes)
    for attribute in relation.attributes:
        if no_types or not is_storable(attribute):
            raise InvalidColumnType(name=name, column=attribute.name, type=attribute.type)
    made = strategy(name, relation, WANTED[wanted])
    _check_maintainable(name, clock_refusals(made.relation))
    return made


def _check_maintainable(name: str, refused: Iterable[Reason]) -> None:
    for refusal in refused:
        raise ViewNotMaintainable(
            name=name,
            subject=refusal.subject,
            reason=refusal.code,
            why=refusal.why,
            do=refusal.do,
        )


def check_columns(name: str, columns: Sequence[str]) -> None:
    """Column names that a Delta table can have, each once, none of ours."""
    if not columns:
        raise InvalidColumn(name=name, column="", reason="there is no column at all")
    seen: set[str] = set()
    for column in columns:
        if column.startswith("__"):
            raise InvalidColumn(
                name=name, column=column, reason="names with __ are freshview's own"
            )
        if _NOT_IN_DELTA & set(column) or not column:
            reason = "a Delta column has no blanks and none of , ; { } ( ) = in its name"
            raise InvalidColumn(name=name, column=column, reason=reason)
        if column.lower() in seen:
            raise InvalidColumn(name=name, column=column, reason="two columns have this name")
        seen.add(column.lower())


def settings_of(spark: SparkSession, names: tuple[str, ...]) -> dict[str, str]:
    """The session's settings that decide what a query means."""
    found = {name: spark.conf.get(name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}
