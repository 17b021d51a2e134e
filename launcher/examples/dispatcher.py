"""Usage: dispatcher.py ROOT JOBS AT_ONCE COMMAND [ARG]...      (weir is $WEIR_BIN, or "weir")
{} becomes the job's number. dispatcher.rs tells the rules; the two may take turns on a ROOT."""
import concurrent.futures, fcntl, hashlib, json, os, subprocess, sys, time

def places(job, n):
    digits = hashlib.sha256(f"{job}\0{job}.{n}".encode()).hexdigest()[:30]
    shard, log = f"{ROOT}/logs/{digits[:2]}", f"local-{digits}.log"
    return f"{shard}/{log}", f"{shard}/.{log}.truncated.json", f"{ROOT}/receipts/jo/{job}.{n}.json"

def lock_of(log, next_log):
    """Waits for the lock while the attempt runs. None: there is no log, it has not begun."""
    while os.path.exists(log):
        try:
            file = open(log)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file if os.fstat(file.fileno()).st_nlink else None
        except (BlockingIOError, FileNotFoundError):
            if os.path.exists(next_log):
                return "lost, says another dispatcher, and holds the lock"
        time.sleep(0.05)

def run_weir(job, n, log):
    call = [WEIR, "run", f"--run-id={job}", f"--attempt-id={job}.{n}", f"--root={ROOT}/logs",
            f"--receipt-root={ROOT}/receipts", "--stdin=null", "--status-fd=1", "--fresh=0", "--"]
    run = subprocess.run(call + [arg.replace("{}", job[4:]) for arg in WORDS], capture_output=True)
    events = {event["event"]: event for event in map(json.loads, run.stdout.splitlines())}
    why = events.get("refused", {"code": f"status {run.returncode}", "message": "nothing left"})
    if not (run.returncode < 0 or why["code"] in ("log-busy", "log-sealed") or os.path.exists(log)):
        raise OSError("{code}: {message}".format(**why))

def see_through(number):
    """Whether the job ended with 0, whether its log is cut, the locks of its lost attempts."""
    job, locks = f"job-{number}", []
    try:
        os.makedirs(ROOT, 0o700, exist_ok=True)
        for _ in range(200):
            (log, fact, receipt), after = places(job, len(locks) + 1), places(job, len(locks) + 2)
            lock = lock_of(log, after[0])
            if os.path.exists(receipt):
                cut = json.load(open(fact))["quotaReached"] if os.path.exists(fact) else None
                return json.load(open(receipt))["exitCode"] == 0, cut, locks
            if lock:
                locks.append(lock)
            else:
                run_weir(job, len(locks) + 1, log)
        raise OSError(f"given up, with {len(locks)} attempts lost")
    except (OSError, ValueError) as why:
        print(f"{job} is refused: {why}", file=sys.stderr)
        return None, "no log", [None] * len(locks)

if len(sys.argv) < 5 or not all(word.isdecimal() and int(word) for word in sys.argv[2:4]):
    sys.exit(print(__doc__, file=sys.stderr) or 2)
(ROOT, JOBS, AT_ONCE, *WORDS), WEIR = sys.argv[1:], os.environ.get("WEIR_BIN", "weir")
with concurrent.futures.ThreadPoolExecutor(int(AT_ONCE)) as pool:
    ends, logs, locks = zip(*pool.map(see_through, range(1, int(JOBS) + 1)))
print(f"{JOBS} jobs: {ends.count(True)} ended with 0, {ends.count(False)} otherwise, "
      f"{ends.count(None)} refused; {logs.count(False)} logs complete, {logs.count(True)} cut, "
      f"{logs.count(None)} unknown; {sum(map(len, locks))} attempts lost")
sys.exit(2 if None in ends else 1 if False in ends else 0)
