"""The smallest program for a job with data: every worker counts the first bytes of the records at its site.

It keeps the contract of docs/jobs.md with nothing but the standard library: it reads only what its site holds, goes on
when more arrives, says what it has processed, and can be stopped and started again at any time.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

stopped: list[int] = []
signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
here = Path(os.environ["TRADEWIND_DATA_DIR"])
mine, workers = map(int, os.environ["TRADEWIND_SITE_SHARD"].split("/"))
counts, done = Counter[int](), set[str]()

while os.environ["TRADEWIND_ROLE"] == "ps" and not stopped:
    time.sleep(0.05)  # this job has nothing for a parameter server to do
with open(os.environ["TRADEWIND_REPORT"], "a", buffering=1) as report:
    while not stopped:
        manifest = json.loads((here / "manifest.json").read_text())
        for shard in manifest["shards"]:
            if shard["number"] % workers != mine or shard["name"] in done:
                continue
            began = time.time()
            counts.update((here / shard["file"]).read_bytes()[:: manifest["record_bytes"]])
            done.add(shard["name"])
            line = {"iteration": len(done), "seconds": time.time() - began, "processed": [shard["name"]]}
            report.write(json.dumps(line) + "\n")
        time.sleep(0.02)
print(sorted(counts.items()))
sys.exit(75)
