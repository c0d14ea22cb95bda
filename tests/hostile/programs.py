"""Programs that attack the control loop, other jobs or the machine. Each creates the file `did` after its deed."""

from __future__ import annotations

DID = 'touch "$DID"; '
PYTHON_PROGRAM = "/usr/bin/python3"
"""Users of jobs may not reach the Python of a virtual environment."""
STAY = DID + "exec sleep 1000"
CHECKPOINT = 'd="$TRADEWIND_CHECKPOINT_DIR"; rm -rf "$d"; '
REPORT = 'rm -rf "$TRADEWIND_REPORT"; '

SHELL: dict[str, str] = {
    # what the loop reads
    "its report file is a directory": REPORT + 'mkdir "$TRADEWIND_REPORT"; ' + STAY,
    "its report file is a fifo": REPORT + 'mkfifo "$TRADEWIND_REPORT"; ' + STAY,
    "its report file is a link": REPORT + 'ln -s /etc/passwd "$TRADEWIND_REPORT"; ' + STAY,
    "its report file is a device": REPORT + 'ln -s /dev/zero "$TRADEWIND_REPORT"; ' + STAY,
    "its report directory is a link": "cd ..; rm -rf report; ln -s /proc/self report; " + STAY,
    "it reports a number with 400 digits": 'printf \'{"iteration": 1%0400d}\\n\' 0 >> "$TRADEWIND_REPORT"; ' + STAY,
    "it reports a number with 9000 digits": 'printf \'{"loss": 1%09000d}\\n\' 0 >> "$TRADEWIND_REPORT"; ' + STAY,
    "it reports times that are no times": 'for i in 1 2 3 4 5 6; do echo "{\\"iteration\\": $i, \\"seconds\\": 1e-300, '
    '\\"samples\\": 1e17, \\"bytes_sent\\": 1e17}" >> "$TRADEWIND_REPORT"; done; ' + STAY,
    "holes make its report file long": 'cd ../report; for n in T G; do truncate -s 1$n rank-0.jsonl && break; done; '
    + DID + "exit 1",
    "it prints without end": "yes | head -c 50000000; " + STAY,
    "it reports garbage": 'head -c 300000 /dev/urandom >> "$TRADEWIND_REPORT"; ' + STAY,
    # how it ends
    "a signal without a name ends it": DID + "kill -35 $$",
    # what the loop makes for it
    "its checkpoint directory is a file": CHECKPOINT + "echo > $d; " + DID + "exit 1",
    "its checkpoint directory is a link": CHECKPOINT + "ln -s /etc $d; " + DID + "exit 1",
    "its home is a link": DID + 'cd /; rm -rf "$HOME"; ln -s /nowhere "$HOME"; exit 1',
    "its home is a fifo": DID + 'cd /; rm -rf "$HOME"; mkfifo "$HOME"; exit 1',
    "its directories are gone": 'cd /; rm -rf "$HOME" "$(dirname "$TRADEWIND_REPORT")" "$TRADEWIND_CHECKPOINT_DIR"; '
    + DID + "exit 1",
    "its directories are closed": DID + 'cd ..; chmod 0 . report checkpoint "$HOME"; exit 1',
    # the loop itself
    "it writes into the files of the loop": "for f in beat lock run machines control/*/*/stop control/*/*/exit; "
    'do echo "{\\"code\\": 0}" > ../../../$f; done 2> /dev/null; ' + STAY,
    "it signals all that it can": DID + "kill -9 -1; exec sleep 1000",
    "it leaves the loop's session and ignores SIGTERM": "trap '' TERM; setsid sleep 1000 & " + DID + "wait; sleep 1000",
}  # fmt: skip

PYTHON: dict[str, str] = {
    "it waits for the loop's lock": """
import fcntl
for name in ("lock", "store.db", "store.db.lock", "run"):
    try:
        file = open(f"../../../{name}")
    except (PermissionError, FileNotFoundError):
        print("refused", name)
    else:
        print("opened", name)
        if os.fork() == 0:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(1000)
did()
time.sleep(1000)
""",
    "its daemon carries the token of another run": """
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execve("/bin/sleep", ["sleep", "1000"], {"TRADEWIND_TOKEN": "that of another run"})
time.sleep(0.2)
did()
time.sleep(1000)
""",
    "it takes all memory that it gets": """
held, size = [], 1 << 26
while size:
    try:
        held.append(bytearray(os.urandom(1 << 12)) * (size >> 12))
    except MemoryError:
        size >>= 1
print("refused", sum(map(len, held)))
did()
time.sleep(1000)
""",
    "it forks a chain that is never there": """
os.setsid() if os.getpid() != os.getsid(0) else None
begun = time.monotonic()
if os.fork():
    time.sleep(0.5)
    did()
    os._exit(3)
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
""",
    "it forks without end": """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
count = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
        count += 1
    except OSError as error:
        print("refused", error, count)
        did()
        time.sleep(1000)
""",
}
HEAD = """
import os, sys, time
def did():
    open(os.environ["DID"], "w").close()
"""


def program(name: str) -> tuple[str, ...]:
    """The command of a program."""
    if name in SHELL:
        return ("sh", "-c", 'DID="$(dirname "$HOME")/did"; export DID; ' + SHELL[name])
    return ("sh", "-c", f'DID="$(dirname "$HOME")/did" exec {PYTHON_PROGRAM} -u -c "$0"', HEAD + PYTHON[name])
