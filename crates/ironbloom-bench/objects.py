"""The cost of a query when the index and its tables are in a bucket: requests and time, at 20 ms per request.

    objects.py PROGRAM [FILES] [ROWS]

An S3 server (moto) behind a proxy that delays and counts requests, both on loopback. FILES tables of ROWS rows each are
written with pyarrow, indexed from the bucket, and asked for two columns with one match: without a cache, with one, and
with the contents that another process left in it.
"""

import http.client
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pyarrow.parquet as pq
from moto.server import ThreadedMotoServer

LATENCY = 0.02
BUCKET = "bucket"


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target = None
    latency = 0.0
    requests = 0
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def handle_any(self):
        with Proxy.lock:
            Proxy.requests += 1
        time.sleep(Proxy.latency)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = http.client.HTTPConnection(*Proxy.target)
        server.request(self.command, self.path, body, dict(self.headers))
        answer = server.getresponse()
        content = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    program = os.path.abspath(sys.argv[1])
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    folder = tempfile.mkdtemp(prefix="ironbloom-objects-")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    Proxy.target = server.get_host_and_port()
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    environment = os.environ | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test-secret",
        "AWS_REGION": "us-east-1",
        "IRONBLOOM_CACHE_DIR": os.path.join(folder, "cache"),
    }

    def run(*args):
        Proxy.requests = 0
        start = time.perf_counter()
        done = subprocess.run([program, "index", *args], env=environment, capture_output=True, text=True)
        elapsed = time.perf_counter() - start
        if done.returncode not in (0, 1):
            sys.exit(f"{args}: {done.stderr}")
        return Proxy.requests, elapsed, done.stdout

    def put(path, content):
        direct = http.client.HTTPConnection(*Proxy.target)
        direct.request("PUT", path, content, {"Authorization": "AWS4-HMAC-SHA256 Credential=test/1/us-east-1/s3/aws4_request"})
        assert direct.getresponse().status == 200

    try:
        put(f"/{BUCKET}", b"")
        for number in range(files):
            ids = range(number * rows, (number + 1) * rows)
            table = pa.table({
                "id": pa.array(ids, pa.int64()),
                "kind": pa.array([i * 7 % 100_003 for i in ids], pa.int64()),
                "name": pa.array([f"name {i}" for i in ids]),
            })
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            put(f"/{BUCKET}/t/{number:04}.parquet", sink.getvalue().to_pybytes())
        index = f"s3://{BUCKET}/t/t.ibx"
        print(f"{files} tables of {rows:,} rows, {LATENCY * 1000:.0f} ms a request")
        requests, elapsed, _ = run("build", f"s3://{BUCKET}/t/", "-o", index)
        print(f"build, without delay   {requests:5} requests  {elapsed * 1000:7.0f} ms")
        Proxy.latency = LATENCY
        identifier = files * rows // 3 + 17
        question = [f"id = {identifier}", f"kind = {identifier * 7 % 100_003}"]
        for name in ["cold", "warm"]:
            shutil.rmtree(environment["IRONBLOOM_CACHE_DIR"], ignore_errors=True)
            times = []
            for _ in range(5):
                if name == "cold":
                    shutil.rmtree(environment["IRONBLOOM_CACHE_DIR"], ignore_errors=True)
                requests, elapsed, out = run("find", index, *question, "--format", "csv")
                assert len(out.splitlines()) == 2, out
                times.append(elapsed)
            median = sorted(times)[len(times) // 2]
            print(f"find, {name}             {requests:5} requests  {median * 1000:7.0f} ms")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


main()
