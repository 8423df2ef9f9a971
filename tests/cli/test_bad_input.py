"""Bad input on the command line: the error as text, no traceback, exit code 1, nothing changed."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.cli.run import in_process, own_process
from tests.unchanged import LOG, unchanged


def failed(shop, code, *arguments, without=()):
    """How a command ends that must fail with a code: as text and as JSON alike."""
    with unchanged(shop, without):
        found = in_process(*arguments, "-w", shop)
        answer = in_process(*arguments, "-w", shop, "--json")
    assert (found.status, found.out) == (1, ""), found
    assert found.err.startswith(f"{code}: "), found.err
    assert "\n  why: " in found.err
    assert "\n  do:  " in found.err
    assert "Traceback" not in found.err
    assert answer.status == 1
    assert (answer.answer["ok"], answer.answer["code"]) == (False, code)
    return found.err


@pytest.fixture
def shop(tmp_path):
    """A warehouse with one table."""
    folder = tmp_path / "shop"
    assert in_process("init", folder).status == 0
    write_deltalake(folder / "orders", pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    assert in_process("register", "orders", folder / "orders", "-w", folder).status == 0
    return folder


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"format": 1, "entr', "WAREHOUSE_CORRUPT"),
        ('{"format": 99}', "WAREHOUSE_TOO_NEW"),
    ],
)
def test_a_catalog_that_cannot_be_read(shop, text, code):
    (shop / "_freshview" / "catalog.json").write_text(text)
    for arguments in (
        ("refresh",),
        ("status",),
        ("sql", "SELECT 1"),
        ("register", "other", shop / "orders"),
    ):
        assert str(shop) in failed(shop, code, *arguments)


def test_tables_that_cannot_be_registered(shop, tmp_path):
    (tmp_path / "file").touch()
    assert "it is a file" in failed(shop, "TABLE_MISSING", "register", "bad", tmp_path / "file")
    log = tmp_path / "damaged" / "_delta_log" / f"{0:020}.json"
    log.parent.mkdir(parents=True)
    for text in ("hello", "", '{"commitInfo":{}}', "\x00\x01", "[]", '{"metaData"'):
        log.write_text(text)
        failed(shop, "TABLE_UNREADABLE", "register", "bad", tmp_path / "damaged")
    failed(shop, "INVALID_NAME", "register", "a b; --", shop / "orders")
    failed(shop, "NAME_TAKEN", "register", "Orders", shop / "orders")
    failed(shop, "INVALID_PATH", "register", "bad", tmp_path / "a%20b")


def test_a_file_of_statements_that_is_no_text(shop, tmp_path):
    file = tmp_path / "latin.sql"
    file.write_bytes("SELECT 1;\nSELECT 'é', '".encode() + b"\xe9';")
    text = failed(shop, "FILE_ERROR", "sql", "--file", file)
    assert f"{file}, line 2, column 14: " in text
    assert "the byte 0xe9" in text
    answer = in_process("sql", "--file", file, "-w", shop, "--json").answer
    assert answer["parameters"] == {"path": str(file), "line": 2, "column": 14, "byte": "0xe9"}
    assert answer["do"] == "save the file as UTF-8"


def test_a_warehouse_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with unchanged(tmp_path):
        for path, code in (("a[b]", "INVALID_PATH"), ("file/below", "WRITE_FAILED")):
            found = in_process("init", tmp_path / path)
            assert (found.status, found.out) == (1, "")
            assert found.err.startswith(f"{code}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk(shop):
    """In a process whose files cannot grow at all."""
    before = (
        "import resource, freshview.runtime.warehouse;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    )
    with unchanged(shop):
        found = own_process(
            *("register", "more", shop / "orders", "-w", shop),
            before=before,
            PYTHONDONTWRITEBYTECODE="1",
        )
    assert (found.status, found.out) == (1, "")
    assert found.err.startswith("WRITE_FAILED: ")
    assert "  why: File too large" in found.err
    assert "Traceback" not in found.err


def test_an_old_java(shop, tmp_path):
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    with unchanged(shop):
        found = own_process("sql", "SELECT 1", "-w", shop, JAVA_HOME=str(tmp_path / "java"))
    assert (found.status, found.out) == (1, "")
    assert found.err.startswith(f"JAVA_TOO_OLD: {java} is Java 11, and Spark runs on Java 17")
    assert "  do:  install Java 17 or later" in found.err
    assert "Traceback" not in found.err


def test_no_java(shop, tmp_path):
    none = str(tmp_path / "none")
    before = (
        f"import pathlib, freshview.runtime.java as j; j._USUAL_FOLDER = pathlib.Path({none!r})"
    )
    with unchanged(shop):
        found = own_process("sql", "SELECT 1", "-w", shop, before=before, JAVA_HOME=none, PATH=none)
    assert (found.status, found.out) == (1, "")
    assert found.err.startswith("JAVA_MISSING: ")
    assert "java is not on PATH" in found.err
    assert "  do:  " in found.err
    assert "Traceback" not in found.err


UNREACHABLE = """<ivysettings><settings defaultResolver="none"/>
<resolvers><ibiblio name="none" m2compatible="true" root="http://127.0.0.1:9/"/></resolvers>
</ivysettings>"""


def test_a_registry_that_cannot_be_reached_at_the_first_start(shop, tmp_path):
    """A user without any cache, and a registry at whose port nobody answers."""
    (tmp_path / "ivy.xml").write_text(UNREACHABLE)
    home = tmp_path / "home"
    with unchanged(shop):
        found = own_process(
            *("sql", "SELECT 1", "-w", shop),
            HOME=str(home),
            FRESHVIEW_HOME=str(home / "freshview"),
            FRESHVIEW_IVY_SETTINGS=str(tmp_path / "ivy.xml"),
        )
    assert (found.status, found.out) == (1, "")
    assert "JARS_UNREACHABLE: " in found.err
    assert "the resolver of Spark said" in found.err
    assert "FRESHVIEW_IVY_SETTINGS" in found.err
    assert "Traceback" not in found.err
    assert not list(home.rglob("*.jar"))


CREATE = "CREATE MATERIALIZED VIEW v AS "


@pytest.mark.spark
def test_statements_that_are_refused(spark, shop):
    for statement, code in (
        (CREATE + "SELECT * FROM nowhere", "DEFINITION_REJECTED"),
        (CREATE + "SELECT rand() AS r FROM orders", "VIEW_NOT_MAINTAINABLE"),
        (CREATE + "DROP TABLE orders", "NOT_A_QUERY"),
        ("CREATE MATERIALIZED VIEW `a;b` AS SELECT id FROM orders", "INVALID_NAME"),
        ("CREATE MATERIALIZED VIEW v POLICY sometimes AS SELECT 1 AS a", "INVALID_STATEMENT"),
        ("CREATE OR REPLACE MATERIALIZED VIEW orders AS SELECT 1 AS a", "NAME_TAKEN"),
        ("DROP MATERIALIZED VIEW nothing", "UNKNOWN_NAME"),
    ):
        failed(shop, code, "sql", statement)


@pytest.mark.spark
def test_a_strict_view_whose_table_lost_its_history_or_is_another_one(spark, shop):
    create = "CREATE MATERIALIZED VIEW v POLICY STRICT AS SELECT id, city FROM orders"
    assert in_process("sql", create, "-w", shop).status == 0
    kept = shutil.copytree(shop / "orders", shop.parent / "kept")
    orders = DeltaTable(shop / "orders")
    orders.delete("id = 1")
    orders.vacuum(0, dry_run=False, enforce_retention_duration=False)
    text = failed(shop, "NOT_INCREMENTAL", "refresh", without=(LOG,))
    assert "v cannot be refreshed incrementally, and its policy is STRICT (HISTORY_LOST)" in text
    assert "The view v was not refreshed." in text
    shutil.rmtree(shop / "orders")
    write_deltalake(shop / "orders", DeltaTable(kept).to_pyarrow_table())
    text = failed(shop, "NOT_INCREMENTAL", "refresh", without=(LOG,))
    assert "(SOURCE_REPLACED)" in text
    assert "the table at its place is not the one" in text
    refreshed = in_process("refresh", "--policy", "incremental", "-w", shop, "--json")
    assert [view["reason"] for view in refreshed.answer["views"]] == ["SOURCE_REPLACED"]
    assert in_process("check", "-w", shop).status == 0
