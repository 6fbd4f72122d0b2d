# Extracts the Bloom filter from a RocksDB table: python3 filter_of_sst.py rocksdb.sst > rocksdb.bin
import sys

data = open(sys.argv[1], "rb").read()

def varint(at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at

# The footer of format 5: a byte for the checksum, then the position of the block that lists the others.
start, at = varint(len(data) - 53 + 1)
size, at = varint(at)
at, end, key = start, start + size - 4, b""
while at < end:
    shared, at = varint(at)
    unshared, at = varint(at)
    length, at = varint(at)
    key = key[:shared] + data[at:at + unshared]
    at += unshared
    if key.startswith(b"fullfilter."):
        place, next = varint(at)
        size, next = varint(next)
        sys.stdout.buffer.write(data[place:place + size])
    at += length
