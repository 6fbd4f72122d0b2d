# Writes Ethereum logs blooms and a DuckDB Parquet file, and their answers. See README.md.
import duckdb
from eth_bloom import BloomFilter

INSERTED, ASKED = 150, 100_000

def save(name, data, contains):
    open(name + ".bin", "wb").write(data)
    answers = bytearray((ASKED + 7) // 8)
    found = 0
    for i in range(ASKED):
        if contains(i):
            answers[i // 8] |= 1 << (i % 8)
            found += 1
    open(name + ".answers", "wb").write(answers)
    print(name, found, "of", ASKED, "found,", len(data), "bytes")

# Key i: an address if i is even, else a topic.
def key(i):
    return i.to_bytes(20, "big") if i % 2 == 0 else i.to_bytes(32, "big")

logs = BloomFilter()
for i in range(INSERTED):
    logs.add(key(i))
save("ethereum", b"0x%0512x\n" % int(logs), lambda i: key(i) in logs)

connection = duckdb.connect()
connection.execute("""
    COPY (
        SELECT (i % 50)::TINYINT - 25 AS i8, (i % 60)::SMALLINT * 7 AS i16, (i % 70)::INTEGER * 1000 AS i32,
               (i % 80)::BIGINT * 1000000007 AS i64, (i % 90)::UINTEGER * 40000000 AS u32,
               (i % 40)::FLOAT / 8 AS f32, (i % 45)::DOUBLE / 16 AS f64,
               'text ' || (i % 55) AS text, DATE '2026-01-01' + (i % 65)::INTEGER AS day,
               ((i % 75) / 100)::DECIMAL(5, 2) AS d5, ((i % 85) / 100 - 0.3)::DECIMAL(30, 2) AS d30
        FROM (SELECT range + CASE WHEN range < 2048 THEN 0 ELSE 20 END AS i FROM range(4096))
    ) TO 'duckdb.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048, DICTIONARY_SIZE_LIMIT 1000, COMPRESSION zstd)
""")
columns = {
    "i8": [str(i) for i in range(-128, 128)], "i16": [str(i) for i in range(500)],
    "i32": [str(500 * i) for i in range(500)], "i64": [str(i * 1000000007) for i in range(500)],
    "u32": [str(i * 20000000) for i in range(200)], "f32": [str(i / 8) for i in range(500)],
    "f64": [str(i / 16) for i in range(500)], "text": [f"text {i}" for i in range(500)],
    "day": [str(connection.execute(f"SELECT DATE '2026-01-01' + {i}").fetchone()[0]) for i in range(200)],
    "d5": [f"{i / 100:.2f}" for i in range(500)], "d30": [f"{i / 100 - 0.3:.2f}" for i in range(200)],
}
types = dict(connection.execute("DESCRIBE SELECT * FROM 'duckdb.parquet'").fetchall() and
             [(row[0], row[1]) for row in connection.execute("DESCRIBE SELECT * FROM 'duckdb.parquet'").fetchall()])
with open("duckdb.answers", "w") as out:
    for column, values in columns.items():
        for value in values:
            # A row group may hold the value if its filter does not exclude it.
            rows = connection.execute(
                f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('duckdb.parquet', '{column}', '{value}'::{types[column]}) ORDER BY row_group_id"
            ).fetchall()
            out.write(f"{column}\t{value}\t{''.join('0' if excluded else '1' for (excluded,) in rows)}\n")
