"""Writes times.parquet: columns of times in each unit, with and without UTC, and their Bloom filters. Needs pyarrow 26."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq

TIMES = [dt.datetime(2026, 11, 18, 9, 30, tzinfo=dt.timezone.utc) + dt.timedelta(hours=hours) for hours in range(100)]
COLUMNS = {
    f"{unit}{'_utc' if zone else ''}": pa.array([time if zone else time.replace(tzinfo=None) for time in TIMES], pa.timestamp(unit, zone))
    for unit in ("ms", "us", "ns")
    for zone in (None, "UTC")
}
table = pa.table(COLUMNS)
pq.write_table(table, "times.parquet", bloom_filter_options={name: {"ndv": 100, "fpp": 0.0001} for name in COLUMNS})
