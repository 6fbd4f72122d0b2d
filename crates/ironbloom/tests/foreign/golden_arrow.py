# Writes a pyarrow Parquet file with Bloom filters. See README.md.
from decimal import Decimal
import pyarrow as pa, pyarrow.parquet as pq

table = pa.table({
    "d9": pa.array([Decimal(i - 30).scaleb(-2) for i in range(100)], pa.decimal128(9, 2)),
    "d30": pa.array([Decimal(i - 30).scaleb(-2) for i in range(100)], pa.decimal128(30, 2)),
    "i8": pa.array([i - 50 for i in range(100)], pa.int8()),
    "u16": pa.array([i * 600 for i in range(100)], pa.uint16()),
    "bytes": pa.array([bytes([i, i + 1, i + 2]) for i in range(100)], pa.binary()),
})
pq.write_table(table, "pyarrow.parquet", row_group_size=50, bloom_filter_options={
    name: {"ndv": 50, "fpp": 0.01} for name in table.column_names})
print(pq.ParquetFile("pyarrow.parquet").schema)
