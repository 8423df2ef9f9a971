from __future__ import annotations

from freshview.bench.samples import Spread, by_stage


def test_spread_has_the_median_and_the_range():
    found = Spread.of([3.0, 1.0, 20.0])
    assert found == Spread(3.0, 1.0, 20.0, 3)
    assert found.text(1) == "3.0 (1.0–20.0)"


def test_stages_keep_their_order_and_a_missing_one_counts_as_none():
    found = by_stage([{"look up": 2.0, "apply": 4.0}, {"apply": 6.0, "rest": 1.0}])
    assert list(found) == ["look up", "apply", "rest"]
    assert found["look up"] == Spread(1.0, 0.0, 2.0, 2)
