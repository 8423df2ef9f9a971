"""Hundreds of kills, one at a time: ``python -m soak.kills --count 200 --seed 1``.

For each, some rows are written, then a process of its own that refreshes, changes, creates or drops
something kills itself (SIGKILL) at a fault point or in the middle of what follows it. Afterwards a
fresh refresh must bring every view to the newest state and the next one find nothing to do. In the
end the checker goes through every version. ``--only N`` replays one kill in a warehouse of its own.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import count
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from freshview import faults
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from soak.attached import attached_session, environment, shared_session
from soak.bank import ENTRIES, HIDDEN, OWNERS, TOTAL, VIEWS, VISITS, prepare
from soak.catalog_states import CatalogStates
from soak.checker import Checker
from soak.dying import stopping_at
from soak.findings import CATALOG, Finding

MADE = "SELECT kind, count(*) AS n FROM visits GROUP BY kind"
HIDDEN_IN_MADE = {"__rows": "count(*)"}
ACTIONS = {
    "refresh": [point for point in faults.POINTS if point.startswith("refresh.")],
    "recompute": ["refresh.before_commit", "refresh.after_commit", "refresh.between_views"],
    "transfer": [point for point in faults.POINTS if point.startswith("transaction.")],
    "create": ["create.evaluated", "create.written", "catalog.before_write", "create.catalogued"],
    "drop": ["catalog.before_write", "drop.catalogued"],
}
WEIGHTS = (6, 2, 4, 1, 1)
MOST_TIMES = {"refresh.stage": 20, "transaction.before_write": 2, "transaction.table_written": 2}


def plan(seed: int, number: int) -> tuple[str, str]:
    """What the child of a kill does and where it dies."""
    dice = random.Random(f"{seed} {number}")
    action = dice.choices(list(ACTIONS), WEIGHTS)[0]
    point = dice.choice(ACTIONS[action])
    most = MOST_TIMES.get(point, 6 if point.startswith("refresh.between") else 1)
    inside = f"+{dice.randint(1, 80)}" if dice.random() < 0.4 else ""
    return action, f"{point}:{dice.randint(1, most)}{inside}"


def act(warehouse: Warehouse, action: str) -> None:
    """The work of a child."""
    if action == "refresh":
        warehouse.refresh()
    elif action == "recompute":
        warehouse.refresh(full=True)
    elif action == "transfer":
        warehouse.apply(transfer("killed", Decimal(7)))
    elif action == "create":
        warehouse.create_view("made", MADE)
    else:
        warehouse.drop_view("made")


def transfer(identity: str, amount: Decimal) -> dict[str, TableChanges]:
    """Money from one account to the other, written anew if it is there already."""
    return {
        name: TableChanges(
            update=pa.Table.from_pylist(
                [{"id": identity, "owner": OWNERS[0], "amount": amount * sign}], ENTRIES
            ),
            key=["id"],
        )
        for name, sign in (("checking", 1), ("savings", -1))
    }


def write(warehouse: Warehouse, dice: random.Random) -> None:
    """Something for the next refresh to do."""
    visits = [{"id": dice.getrandbits(40), "owner": dice.choice(OWNERS), "kind": "a"}]
    changes = transfer(f"{dice.getrandbits(20)}", Decimal(dice.randint(1, 99)))
    changes["visits"] = TableChanges(insert=pa.Table.from_pylist(visits, VISITS))
    warehouse.apply(changes)


def misplaced(root: Path, where: str, *may: bool) -> list[Finding]:
    """The view that is created and dropped, if it is in the catalog or not against the journal."""
    if is_made(root) in may:
        return []
    return [Finding(CATALOG, where, "made is lost" if may[0] else "made is there again")]


def is_made(root: Path) -> bool:
    return "made" in CatalogStates(root).newest


def kill(root: Path, spark: SparkSession, seed: int, number: int) -> tuple[str, list[Finding]]:
    """One kill and what came of it; the first answer is what was killed, or that it lived."""
    action, place = plan(seed, number)
    where = f"kill {number}: {action} at {place}"
    warehouse, made = open_warehouse(root, spark), is_made(root)
    if action == "drop" and not made:
        warehouse.create_view("made", MADE)
    if action == "create" and made:
        warehouse.drop_view("made")
    changes = action in {"create", "drop"}
    made = action == "drop" if changes else made
    found = misplaced(root, f"before {where}", made)
    write(warehouse, random.Random(f"rows {seed} {number}"))
    command = [sys.executable, "-m", "soak.kills", "--child", str(root), action, place]
    child = subprocess.run(
        command, env=environment(spark), capture_output=True, text=True, timeout=300, check=False
    )
    if child.returncode == 0:  # it never came to the place as often as that
        return "lived", found + misplaced(root, where, made != changes)
    if child.returncode != -9:
        return "failed", [*found, Finding("error", where, child.stderr[-900:])]
    found += misplaced(root, where, *([True, False] if changes else [made]))
    made = is_made(root)
    after = open_warehouse(root, spark)
    after.refresh()
    left = {view.mode for view in after.refresh().views}
    if left != {"unchanged"}:
        found.append(Finding("error", where, f"a refresh left {left}"))
    return action, found + misplaced(root, f"after {where}", made)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one kill")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        root, action, place = options.child
        warehouse = open_warehouse(root, attached_session(), create=False)
        faults.install(stopping_at(place))
        act(warehouse, action)
        return 0
    spark = shared_session("freshview-kills")
    root = Path(tempfile.mkdtemp(prefix="freshview-kills-"))
    prepare(open_warehouse(root, spark))
    killed: Counter[str] = Counter()
    findings: list[Finding] = []
    for number in count(1) if options.only is None else (options.only,):
        if killed.total() - killed["lived"] >= options.count:
            break
        what, found = kill(root, spark, options.seed, number)
        killed[what] += 1
        findings += found
        if number % 10 == 0:
            print(f"{killed.total() - killed['lived']} kills, {len(findings)} found", flush=True)
    (bank,) = open_warehouse(root, spark).read("bank").collect()
    if bank["total"] != TOTAL:
        findings.append(Finding("by halves", "the bank", f"has {bank['total']}, not {TOTAL}"))
    open_warehouse(root, spark).refresh()
    checker = Checker(root, spark, hidden={**HIDDEN, "made": HIDDEN_IN_MADE})
    verdict = checker.run(settled=True, expected=VIEWS)
    findings += verdict.findings
    print(f"{dict(killed)}\n{verdict}")
    if not findings:
        shutil.rmtree(root)
        return 0
    for finding in findings[:20]:
        print(f"{finding.kind}: {finding.where}: {finding.what}")
    print(f"kept in {root}; one of them again: python -m soak.kills --seed {options.seed} --only N")
    return 1


if __name__ == "__main__":
    sys.exit(main())
