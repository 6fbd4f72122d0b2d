"""redis-py as a client of the module: every method of `r.bf()` and `r.cf()`, on RedisBloom's layout and on native filters, and of
`r.cms()`, `r.topk()` and `r.tdigest()`.

    redis_py.py PORT PROTOCOL

Ends with status 0 if all answers are right.
"""

import sys

import redis

port, protocol = int(sys.argv[1]), int(sys.argv[2])
r = redis.Redis(port=port, protocol=protocol, decode_responses=False)
r.flushall()


def same(ours, expected):
    assert ours == expected, f"{ours!r} instead of {expected!r}"


def field(info, attribute, name):
    """A field of an INFO, which is an object in the second version of the protocol and may be a dict in the third."""
    if hasattr(info, attribute):
        return getattr(info, attribute)
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in info.items()}[name]


def refused(call, *args, **named):
    try:
        call(*args, **named)
    except redis.ResponseError as error:
        return str(error)
    raise AssertionError(f"{call} {args} was not refused")


def bloom(name):
    bf = r.bf()
    same(bf.add(name, "alice"), 1)
    same(bf.add(name, "alice"), 0)
    same(list(bf.madd(name, "bob", "alice", "carol")), [1, 0, 1])
    same(list(bf.insert(name, ["dave", "bob"])), [1, 0])
    same(bf.exists(name, "alice"), 1)
    same(bf.exists(name, "eve"), 0)
    same(list(bf.mexists(name, "alice", "eve", "dave")), [1, 0, 1])
    info = bf.info(name)
    same(field(info, "filterNum", "Number of filters"), 1)
    assert field(info, "size", "Size") > 0 and field(info, "capacity", "Capacity") > 0
    # Piece by piece to another key.
    pieces, iterator = [], 0
    while True:
        iterator, piece = bf.scandump(name, iterator)
        if iterator == 0:
            break
        pieces.append((iterator, piece))
    for iterator, piece in pieces:
        same(bf.loadchunk(f"{name}-copy", iterator, piece) in (True, b"OK", "OK"), True)
    same(list(bf.mexists(f"{name}-copy", "alice", "eve", "dave")), [1, 0, 1])
    same(bf.card(name), bf.card(f"{name}-copy"))


bf, cf = r.bf(), r.cf()
assert bf.create("theirs", 0.001, 1000)
assert bf.create("theirs4", 0.01, 1000, expansion=4)
assert bf.create("fixed", 0.01, 10, noScale=True)
same(refused(bf.create, "theirs", 0.001, 1000), "item exists")
r.execute_command("BF.RESERVE", "blocked", 0.001, 1000, "LAYOUT", "BLOCKED")
r.execute_command("BF.RESERVE", "window", 0.001, 1000, "WINDOW", 1000)
for name in ["theirs", "theirs4", "blocked", "window", "made"]:
    bloom(name)
same(bf.card("theirs"), 4)
same(field(bf.info("theirs4"), "expansionRate", "Expansion rate"), 4)
same(field(bf.info("theirs"), "insertedNum", "Number of items inserted"), 4)
same(list(bf.insert("inserted", ["x", "y"], capacity=50, error=0.01, expansion=2)), [1, 1])
assert "not found" in refused(bf.insert, "absent", ["x"], noCreate=True)


def cuckoo(name):
    same(cf.add(name, "alice"), 1)
    same(cf.add(name, "alice"), 1)
    same(cf.addnx(name, "alice"), 0)
    same(cf.addnx(name, "bob"), 1)
    same(list(cf.insert(name, ["carol", "dave"])), [1, 1])
    same(list(cf.insertnx(name, ["carol", "eve"])), [0, 1])
    same(cf.exists(name, "eve"), 1)
    same(list(cf.mexists(name, "alice", "frank")), [1, 0])
    same(cf.count(name, "alice"), 2)
    same(cf.delete(name, "alice"), 1)
    same(cf.delete(name, "frank"), 0)
    same(cf.count(name, "alice"), 1)
    info = cf.info(name)
    same(field(info, "insertedNum", "Number of items inserted"), 5)
    same(field(info, "deletedNum", "Number of items deleted"), 1)
    pieces, iterator = [], 0
    while True:
        iterator, piece = cf.scandump(name, iterator)
        if iterator == 0:
            break
        pieces.append((iterator, piece))
    for iterator, piece in pieces:
        cf.loadchunk(f"{name}-copy", iterator, piece)
    same(list(cf.mexists(f"{name}-copy", "alice", "frank", "eve")), [1, 0, 1])


assert cf.create("ctheirs", 1000)
assert cf.create("cother", 1000, expansion=2, bucket_size=4, max_iterations=30)
r.execute_command("CF.RESERVE", "cnative", 1000, "ERROR", 0.0001)
for name in ["ctheirs", "cother", "cnative", "cmade"]:
    cuckoo(name)
same(field(cf.info("cother"), "bucketSize", "Bucket size"), 4)
pipe = r.pipeline()
pipe.bf().add("blocked", "grace")
pipe.bf().exists("blocked", "grace")
same(list(map(int, pipe.execute())), [1, 1])
cms = r.cms()
assert cms.initbydim("counts", 1000, 5) and cms.initbyprob("planned", 0.01, 0.01)
same(refused(cms.initbydim, "counts", 1000, 5), "CMS: key already exists")
same(list(cms.incrby("counts", ["a", "b"], [5, 3])), [5, 3])
same(list(cms.query("counts", "a", "b", "c")), [5, 3, 0])
assert cms.initbydim("sum", 1000, 5) and cms.merge("sum", 2, ["counts", "counts"], [1, 2])
same(list(cms.query("sum", "a")), [15])
same(field(cms.info("sum"), "count", "count"), 24)

topk = r.topk()
assert topk.reserve("top", 3, 50, 3, 0.9)
same(list(topk.add("top", "a", "b", "a")), [None, None, None])
same(list(topk.incrby("top", ["a"], [5])), [None])
same(list(map(int, topk.query("top", "a", "z"))), [1, 0])
same(list(topk.count("top", "a")), [7])
text = lambda item: item.decode() if isinstance(item, bytes) else item
same([text(item) for item in topk.list("top")], ["a", "b"])
same([text(item) for item in topk.list("top", withcount=True)], ["a", 7, "b", 1])
same(field(topk.info("top"), "k", "k"), 3)

tdigest = r.tdigest()
assert tdigest.create("times", 100) and tdigest.add("times", [1.0, 2.0, 3.0])
number = lambda reply: float(reply[0]) if isinstance(reply, list) else float(reply)
same(number(tdigest.min("times")), 1.0)
same(number(tdigest.max("times")), 3.0)
same(number(tdigest.quantile("times", 0.5)), 2.0)
same(number(tdigest.cdf("times", 2.0)), 0.5)
same(number(tdigest.rank("times", 2.0)), 1.0)
same(number(tdigest.revrank("times", 2.0)), 1.0)
same(number(tdigest.byrank("times", 1)), 2.0)
same(number(tdigest.byrevrank("times", 0)), 3.0)
same(number(tdigest.trimmed_mean("times", 0, 1)), 2.0)
assert tdigest.merge("merged", 2, "times", "times", compression=50, override=True)
same(field(tdigest.info("merged"), "compression", "Compression"), 50)
assert tdigest.reset("times")
print(f"redis-py {redis.__version__}, protocol {protocol}: all answers are right")
