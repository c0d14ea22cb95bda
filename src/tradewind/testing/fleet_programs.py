"""Programs for tests of fleets. Real fleets run them with a shell; the fake fleet reads what they do from their words.

| program | what it does |
|---|---|
| `count N SECONDS` | N iterations from its checkpoint, each of SECONDS; rank 0 writes the checkpoint, all ranks report |
| `crash N K` | as `count N 0.05`, but every rank kills itself after K iterations the first time |
| `fail CODE` | exits with CODE |
| `sleep` | sleeps until it is stopped; writes no checkpoint |
| `stubborn` | ignores SIGTERM, and reports an iteration once it does |
| `noisy BYTES` | writes BYTES bytes and exits with 0 |
| `liar` | reports nonsense and an absurd number of iterations, then sleeps |

The checkpoint of `count` and `crash` is the file `done`, a line for every iteration of rank 0.
"""

from __future__ import annotations

SCRIPT = r"""
stop() { exit 75; }
count() { # N SECONDS K: counts to N; dies after K iterations if this is the first time
  d=$TRADEWIND_CHECKPOINT_DIR
  i=$(cat "$d/done" 2>/dev/null | wc -l)
  trap stop TERM
  while [ "$i" -lt "$1" ]; do
    sleep "$2"
    i=$((i+1))
    [ "$RANK" != 0 ] || echo $i >> "$d/done"
    printf '{"iteration": %s, "seconds": %s, "bytes_sent": 10, "loss": 1, "workers": 1}\n' $i "$2" >> "$TRADEWIND_REPORT"
    if [ "$i" = "$3" ] && [ ! -e "$d/crashed-$RANK" ]; then touch "$d/crashed-$RANK"; kill -9 $$; fi
  done
}
case $0 in
count) count "$1" "$2" 0 ;;
crash) count "$1" 0.05 "$2" ;;
fail) exit "$1" ;;
sleep) exec sleep 1000 ;;
stubborn)
  trap '' TERM
  echo '{"iteration": 1}' >> "$TRADEWIND_REPORT"
  while :; do sleep 0.1; done ;;
noisy) yes | head -c "$1"; echo the end ;;
liar)
  for line in nonsense '[1]' '{"iteration": -5}' '{"iteration": 1e400}' '{"iteration": "x"}' '{"iteration": 1e17}'; do
    echo "$line" >> "$TRADEWIND_REPORT"
  done
  exec sleep 1000 ;;
esac
"""
STEP_S = 0.05
"""Seconds of an iteration of `crash`."""


def program(name: str, *values: float) -> tuple[str, ...]:
    """The command of a program."""
    return ("sh", "-c", SCRIPT, name, *(f"{value:.12g}" for value in values))


def words(command: tuple[str, ...]) -> tuple[str, tuple[float, ...]]:
    """Name and values of the program that a command runs."""
    return command[3], tuple(map(float, command[4:]))
