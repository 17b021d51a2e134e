"""What every task of `task` prints, and how it ends."""
import hashlib
from signal import Signals

from records import End

QUOTA_BYTES = 65536
TASKS = 200
KINDS = (
    "below the quota", "exactly at it", "one byte above", "far above", "exit code", "signal",
    "child that hears TERM", "session that ignores TERM", "chain of digests", "at it, with stderr",
)

# The second array. The last ones are never started: they wait for a place.
CANCELLED = (
    "handles", "handles", "dies", "dies", "ignores", "ignores", "bounded", "bounded", "counts",
    "requeued", "pending", "pending", "pending", "pending",
)
RUNNING = CANCELLED.index("pending")


def compute(task, size_bytes):
    """What the function of the same name in `task` prints."""
    written, lines, i = 0, [], 0
    while written < size_bytes:
        i += 1
        lines.append(f"{task} {i} {i * i * task % 1000003}\n"[: size_bytes - written])
        written += len(lines[-1])
    return "".join(lines).encode()


def chain(task):
    digest, lines = str(task), []
    for _ in range(5):
        digest = hashlib.sha256(digest.encode()).hexdigest() + "  -"
        lines.append(digest + "\n")
    return "".join(lines).encode()


def first_array(task):
    """The output and the end of one of the 200."""
    signals = ("SIGHUP", "SIGINT", "SIGKILL", "SIGUSR1", "SIGTERM")
    match task % 10:
        case 0:
            return compute(task, 1000 + 37 * task), End()
        case 1:
            return compute(task, 65536), End()
        case 2:
            return compute(task, 65537), End()
        case 3:
            return compute(task, 131072 + task), End()
        case 4:
            return compute(task, 500 + task), End(exit_code=1 + task)
        case 5:
            name = signals[task // 10 % 5]
            return compute(task, 500 + task), End(None, Signals[name].value)
        case 6:
            return compute(task, 2000 + task) + b"child ends\n", End()
        case 7:
            return compute(task, 65530 + task), End()
        case 8:
            return chain(task), End()
        case _:
            return compute(task, 65000) + compute(task, 536), End()


def second_array(kind):
    """The output and the end of a task that is cancelled; of `requeued`, its first start."""
    return {
        "handles": (b"ready\ndone\n", End(exit_code=3)),
        "counts": (b"ready\ntold\n", End(exit_code=4)),
        "dies": (b"ready\n", End(None, Signals.SIGTERM.value)),
        "ignores": (b"ready\n", End(None, Signals.SIGKILL.value)),
        "bounded": (b"ready\n", End(None, Signals.SIGKILL.value)),
        "requeued": (b"start 0\nready\n", End(None, Signals.SIGTERM.value)),
    }[kind]
