"""The values of the clock, and ranges of days and moments, without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshview.algebra.clock import DAY, LOCAL, NOW, clock_parts, clock_table, is_clock
from freshview.algebra.clock_time import EPOCH, clock_value, shown_clock, version_at, zone_of
from freshview.errors import InvalidMoment
from freshview.runtime.clock import (
    clock_changes,
    clock_rows,
    clock_state,
    fixed_clock,
    moment_of,
    moment_text,
    pinned_clock,
)
from freshview.runtime.clock_ranges import column_ranges
from freshview.storage.interface import COUNT

ZONES = ["UTC", "Z", "Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati", "+14:00", "GMT-3"]


def test_the_name_of_a_clock_is_its_function_and_its_zone() -> None:
    assert clock_parts(clock_table(DAY, "Europe/Berlin")) == (DAY, "Europe/Berlin")
    assert clock_parts(clock_table(NOW)) == (NOW, None)
    assert not is_clock("now")
    assert not is_clock("current_date")


@given(
    moment=st.integers(-(2**51), 2**53).map(lambda n: EPOCH + timedelta(microseconds=n)),
    zone=st.sampled_from(ZONES),
)
def test_a_version_stands_for_the_value_at_its_moment(moment: datetime, zone: str) -> None:
    local = moment.astimezone(zone_of(zone))
    day, now, here = clock_table(DAY, zone), clock_table(NOW), clock_table(LOCAL, zone)
    assert clock_value(day, version_at(day, moment)) == local.date()
    assert clock_value(now, version_at(now, moment)) == moment
    assert clock_value(here, version_at(here, moment)) == local.replace(tzinfo=None)


@pytest.mark.parametrize("name", ["PST", "Nowhere", "", "../etc", "+25:00", "UTC+"])
def test_zones_that_python_does_not_know(name: str) -> None:
    with pytest.raises(ValueError, match=r"zone|offset"):
        zone_of(name)


def test_offsets_as_spark_writes_them() -> None:
    assert zone_of("-08:30") == timezone(-timedelta(hours=8, minutes=30))
    assert zone_of("UTC+1") == zone_of("+01:00") == timezone(timedelta(hours=1))


def test_the_clock_is_a_table_of_one_row() -> None:
    day = clock_table(DAY, "UTC")
    version = pinned_clock(day, datetime(2026, 11, 16, 8, tzinfo=UTC)).version
    assert clock_rows(day, version).to_pylist() == [{"today": date(2026, 11, 16)}]
    assert clock_changes(day, version, version + 1).to_pylist() == [
        {"today": date(2026, 11, 16), COUNT: -1},
        {"today": date(2026, 11, 17), COUNT: 1},
    ]
    assert clock_state(day, version).arrow_schema.names == ["today"]


def test_the_moment_of_a_view_is_the_most_exact_that_it_reads() -> None:
    moment = datetime(2026, 11, 16, 8, tzinfo=UTC)
    day, now = clock_table(DAY, "UTC"), clock_table(NOW)
    assert moment_text({"orders": pinned_clock(now, moment)}) is None
    assert moment_text({day: pinned_clock(day, moment)}) == "2026-11-16"
    both = {name: pinned_clock(name, moment) for name in (day, now)}
    assert moment_text(both) == shown_clock(now, both[now].version) == "2026-11-16T08:00:00+00:00"


@pytest.mark.parametrize("wrong", ["soon", "2026-11-16T08:00:00", "", "0001-01-01T00:00:00+14:00"])
def test_a_moment_has_a_time_zone(wrong: str) -> None:
    with pytest.raises(InvalidMoment):
        moment_of(fixed_clock(wrong))


def test_a_clock_that_returns_something_else() -> None:
    with pytest.raises(InvalidMoment) as caught:
        moment_of(lambda: date(2026, 11, 16))
    assert caught.value.parameters["moment"] == date(2026, 11, 16)


@given(
    day=st.dates(date(1901, 1, 1), date(2100, 1, 1)),
    later=st.integers(0, 40),
    inside=st.floats(0, 1),
    zone=st.sampled_from(ZONES),
)
def test_a_range_of_a_cast_holds_every_value_whose_cast_lies_in_it(
    day: date, later: int, inside: float, zone: str
) -> None:
    """ts whose day lies in a range of days, and days that begin in a range of moments."""
    here = zone_of(zone)
    begin = datetime(day.year, day.month, day.day, tzinfo=here)
    moment = begin + (timedelta(days=later + 1, microseconds=-1)) * inside
    days = (pa.array([moment.astimezone(here).date()]), pa.array([day + timedelta(days=later)]))
    low, high = column_ranges("timestamp", *days)
    assert low[0].as_py() <= moment <= high[0].as_py()
    low, high = column_ranges("timestamp_ntz", *days)
    assert low[0].as_py() <= moment.replace(tzinfo=None) <= high[0].as_py()
    moments = tuple(
        pa.array([m], pa.timestamp("us", tz="UTC")) for m in (begin, begin + timedelta(days=later))
    )
    low, high = column_ranges("date", *moments)
    assert low[0].as_py() <= day <= high[0].as_py()
    low, high = column_ranges("timestamp_ntz", *moments)
    assert low[0].as_py() <= begin.replace(tzinfo=None) <= high[0].as_py()


def test_ranges_in_the_type_of_the_column_stay_as_they_are() -> None:
    numbers = pa.array([1, 2])
    assert column_ranges("bigint", numbers, numbers) == (numbers, numbers)
    berlin = pa.array([0], pa.timestamp("us", tz="Europe/Berlin"))
    assert column_ranges("timestamp", berlin, berlin) == (berlin, berlin)


def test_a_range_past_what_a_timestamp_can_be_is_cut_off() -> None:
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    low, high = column_ranges("timestamp", far, far)
    assert low.cast(pa.int64())[0].as_py() == high.cast(pa.int64())[0].as_py() == 2**63 - 1
