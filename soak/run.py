"""A soak: writers, refreshers and readers at once, killed now and then, then everything is checked.

``python -m soak.run --minutes 10 --kills 60 --seed 1``. The seed decides what each process does and
when it is killed; what they do to each other also depends on the machine, so the same seed is the
same storm, not the same waves. The folder of a run that found something is kept.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from freshview.faults import POINTS
from freshview.runtime.warehouse import open_warehouse
from soak.attached import environment, shared_session
from soak.bank import HIDDEN, VIEWS, prepare
from soak.checker import Checker
from soak.findings import Finding

ACTORS = ("transfer-1", "visit-1", "reshape-1", "refresh-1", "refresh-2", "read-1")
DEADLY = {
    "transfer": [point for point in POINTS if point.startswith("transaction.")],
    "refresh": [point for point in POINTS if point.startswith("refresh.")],
}
_LATE_S = 60.0


@dataclass(slots=True)
class Storm:
    """The running processes of a soak."""

    folder: Path
    spark: SparkSession
    dice: random.Random
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)
    kills: int = 0
    starts: int = 0
    errors: list[Finding] = field(default_factory=list)

    def start(self, actor: str, *, doomed: bool) -> None:
        """Start an actor; a doomed one kills itself at a fault point of its own choice."""
        fate = []
        points = DEADLY.get(actor.split("-", maxsplit=1)[0], [])
        if doomed and points:
            inside = f"+{self.dice.randint(1, 60)}" if self.dice.random() < 0.5 else ""
            fate = [f"{self.dice.choice(points)}:{self.dice.randint(1, 6)}{inside}"]
        self.starts += 1
        command = [sys.executable, "-m", "soak.actors", actor, str(self.folder), str(self.starts)]
        self.logs[actor] = self.folder / f"{actor}.{self.starts}.err"
        with self.logs[actor].open("w") as errors:
            self.running[actor] = subprocess.Popen(
                [*command, *fate], stderr=errors, text=True, env=environment(self.spark)
            )

    def look(self, left: int) -> None:
        """Start again what was killed, and note what ended by itself."""
        for actor, process in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            self._ended(actor, code)
            self.start(actor, doomed=left > 0 and self.dice.random() < 0.5)

    def kill_one(self) -> None:
        actor = self.dice.choice(sorted(self.running))
        self.running[actor].kill()

    def stop(self) -> None:
        """Let everyone finish what they are doing."""
        (self.folder / "stop").touch()
        deadline = time.monotonic() + _LATE_S
        for actor, process in self.running.items():
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                self.errors.append(Finding("error", actor, f"did not end in {_LATE_S} s"))
            if process.returncode:
                self._ended(actor, process.returncode)

    def _ended(self, actor: str, code: int) -> None:
        if code == -signal.SIGKILL:
            self.kills += 1
        else:
            text = self.logs[actor].read_text()
            self.errors.append(Finding("error", actor, f"ended with {code}: {text[-900:]}"))


def storm(folder: Path, spark: SparkSession, options: argparse.Namespace) -> Storm:
    """Run the actors for as long as asked, killing as many as asked."""
    now = Storm(folder, spark, random.Random(options.seed))
    for actor in options.actors:
        now.start(actor, doomed=options.kills > 0)
    started = time.monotonic()
    length = options.minutes * 60
    shown = 0.0
    while time.monotonic() - started < length:
        time.sleep(0.2)
        passed = time.monotonic() - started
        now.look(options.kills - now.kills)
        if now.kills < options.kills * passed / length:
            now.kill_one()
        if passed - shown > 30:
            shown = passed
            print(f"{passed:5.0f} s  {now.kills} kills, {counted(folder)}", flush=True)
    now.stop()
    return now


def notes(folder: Path, role: str) -> list[dict[str, Any]]:
    """What the actors of a role wrote down, in the order of time."""
    lines = [line for file in folder.glob(f"{role}-*.jsonl") for line in file.open()]
    return sorted((json.loads(line) for line in lines), key=lambda note: note["time"])


def counted(folder: Path) -> str:
    """What was done so far."""
    done = sum("done" in note for note in notes(folder, "transfer"))
    written = len(notes(folder, "visit")) + len(notes(folder, "reshape"))
    refreshes, reads = len(notes(folder, "refresh")), len(notes(folder, "read"))
    return f"{done} transfers, {written} other writes, {refreshes} refreshes, {reads} reads"


def idle(folder: Path, now: Storm, options: argparse.Namespace) -> list[Finding]:
    """What a soak must have seen to mean anything: every role at work, and as many kills as asked."""
    roles = {actor.split("-", maxsplit=1)[0] for actor in options.actors}
    found = [Finding("error", role, "did nothing") for role in roles if not notes(folder, role)]
    if now.kills < options.kills:
        found.append(Finding("error", "kills", f"{now.kills} of {options.kills}"))
    return found


def misread(folder: Path) -> list[Finding]:
    """The times at which a reader saw views that do not agree."""
    wrong = [note for note in notes(folder, "read") if not note["right"]]
    return [Finding("misread", f"epoch {n['epoch']}", f"the sum is {n['total']}") for n in wrong]


def unkept(folder: Path, spark: SparkSession) -> list[Finding]:
    """Transactions that were acknowledged and are not there once in both tables, or by halves."""
    journal = notes(folder, "transfer")
    state = {}
    for note in journal:
        for kind in ("begun", "done", "undoing", "undone"):
            if kind in note:
                state[note[kind]] = kind
    held = [
        Counter(
            row["id"]
            for row in spark.read.format("delta")
            .load(str(folder / "warehouse" / "tables" / name))
            .select("id")
            .collect()
        )
        for name in ("checking", "savings")
    ]
    allowed = {"begun": {0, 1}, "done": {1}, "undoing": {0, 1}, "undone": {0}}
    found = []
    for identity, kind in state.items():
        one, two = held[0][identity], held[1][identity]
        if one != two:
            found.append(Finding("by halves", identity, f"{kind}: {one} and {two} times"))
        elif one not in allowed[kind]:
            missing = "twice" if one > 1 else "lost"
            found.append(Finding(missing, identity, f"{kind}, and it is there {one} times"))
    return found


def soak(folder: Path, options: argparse.Namespace) -> tuple[dict[str, Any], list[Finding]]:
    """Prepare, storm, refresh once more, and check everything."""
    spark = shared_session("freshview-soak")
    root = folder / "warehouse"
    warehouse = open_warehouse(root, spark)
    prepare(warehouse)
    now = storm(folder, spark, options)
    last = open_warehouse(root, spark)
    last.refresh()
    again = {view.mode for view in last.refresh().views}
    if again != {"unchanged"}:
        now.errors.append(Finding("error", "the last refresh", f"left {again}"))
    started = time.monotonic()
    checker = Checker(root, spark, lambda text: print(f"  {text}", flush=True), HIDDEN)
    verdict = checker.run(settled=True, expected=VIEWS)
    misreads, losses = misread(folder), unkept(folder, spark)
    findings = [*now.errors, *idle(folder, now, options), *misreads, *losses, *verdict.findings]
    print(f"{now.kills} kills, {counted(folder)}; checked in {time.monotonic() - started:.0f} s")
    print(verdict)
    modes = Counter(mode for note in notes(folder, "refresh") for mode in note["modes"])
    result = {
        "seed": options.seed,
        "minutes": options.minutes,
        "kills": now.kills,
        "views checked": len(verdict.views),
        "view versions checked": verdict.versions,
        "epochs checked": verdict.epochs,
        "refreshes": len(notes(folder, "refresh")),
        "modes": dict(modes),
        "reads": len(notes(folder, "read")),
        "transfers": sum("done" in note for note in notes(folder, "transfer")),
        "findings": dict(Counter(finding.kind for finding in findings)),
    }
    return result, findings


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=60, help="at least so many SIGKILLs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--actors", nargs="+", default=ACTORS, metavar="ROLE-NUMBER")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="freshview-soak-"))
    result, findings = soak(folder, options)
    print(json.dumps(result, indent=1))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    if not findings:
        shutil.rmtree(folder)
        return 0
    for finding in findings[:20]:
        print(f"{finding.kind}: {finding.where}: {finding.what}")
    told = f"--minutes {options.minutes} --kills {options.kills} --seed {options.seed}"
    told += f" --actors {' '.join(options.actors)}"
    print(f"everything is kept in {folder}; the same storm again: python -m soak.run {told}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
