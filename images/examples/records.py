"""What weir must have left of an attempt, and what it has left. Shared by the examples' checks."""
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attempt:
    """One attempt's files, by the rule that the README gives."""

    root: Path
    receipt_root: Path
    run_id: str
    attempt_id: str

    @property
    def artifact_id(self):
        ids = f"{self.run_id}\0{self.attempt_id}".encode()
        return "local-" + hashlib.sha256(ids).hexdigest()[:30]

    @property
    def shard(self):
        return self.root / self.artifact_id.removeprefix("local-")[:2]

    @property
    def log(self):
        return self.shard / f"{self.artifact_id}.log"

    @property
    def fact(self):
        return self.shard / f".{self.artifact_id}.log.truncated.json"

    @property
    def fifo(self):
        return self.shard / f".{self.artifact_id}.log.fifo"

    @property
    def drafts(self):
        fact = self.shard / f".{self.artifact_id}.log.truncated.tmp"
        receipt = self.receipt.parent / f".{self.receipt.name}.receipt.tmp"
        return fact, receipt

    @property
    def receipt(self):
        return self.receipt_root / self.attempt_id[:2] / f"{self.attempt_id}.json"


@dataclass(frozen=True)
class End:
    """How a job ends: one of the two is None."""

    exit_code: int | None = 0
    signal: int | None = None


def fact_of(attempt, output, quota_bytes):
    """The fact of a job that has printed `output`, without the time."""
    return {
        "schemaVersion": 2,
        "runId": attempt.run_id,
        "attemptId": attempt.attempt_id,
        "logArtifactId": attempt.artifact_id,
        "maximumBytes": quota_bytes,
        "quotaReached": len(output) > quota_bytes,
        "startBytes": 0,
        "keptBytes": min(len(output), quota_bytes),
        "droppedBytes": max(len(output) - quota_bytes, 0),
    }


def receipt_of(attempt, output, quota_bytes, end):
    """The receipt of that job, without times and measures."""
    fact = fact_of(attempt, output, quota_bytes)
    same = ("schemaVersion", "runId", "attemptId", "logArtifactId")
    counts = ("startBytes", "keptBytes", "droppedBytes")
    return {
        **{key: fact[key] for key in (*same, *counts)},
        "exitCode": end.exit_code,
        "signal": end.signal,
        "startError": None,
        "capture": "truncated" if fact["quotaReached"] else "complete",
        "captureError": None,
    }


FACT_MEASURES = {"observedAtMs"}
RECEIPT_MEASURES = {
    "startedAtMs", "finishedAtMs", "coreDumped", "userMs", "systemMs", "maxRssBytes",
}


def differences(attempt, output, quota_bytes, end):
    """Everything in which the attempt's files are not what they must be."""
    found = []
    kept = output[:quota_bytes]
    log = read(attempt.log)
    if log != kept:
        found.append(f"log: {describe(log)}, not {describe(kept)}")
    expected = fact_of(attempt, output, quota_bytes)
    found += record_differences("fact", attempt.fact, expected, FACT_MEASURES)
    expected = receipt_of(attempt, output, quota_bytes, end)
    found += record_differences("receipt", attempt.receipt, expected, RECEIPT_MEASURES)
    return found


def record_differences(name, path, expected, measures):
    content = read(path)
    if content is None:
        return [f"{name}: there is none"]
    try:
        record = json.loads(content)
    except ValueError as why:
        return [f"{name}: {why}"]
    found = []
    if json.dumps(record, separators=(",", ":")).encode() != content:
        found.append(f"{name}: not canonical: {content!r}")
    if record.keys() != expected.keys() | measures:
        found.append(f"{name}: has the keys {sorted(record)}")
    for key, value in expected.items():
        # The type counts too: True is not 1 here.
        if json.dumps(record.get(key)) != json.dumps(value):
            found.append(f"{name}: {key} is {record.get(key)}, not {value}")
    if stat.S_IMODE(os.lstat(path).st_mode) != 0o600:
        found.append(f"{name}: mode {os.lstat(path).st_mode:o}")
    return found


def read(path):
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def describe(content):
    if content is None:
        return "no file"
    return f"{len(content)} bytes ending in {content[-20:]!r}"


def files_below(*roots):
    """Everything below these folders that is not a folder."""
    found = set()
    for root in roots:
        for folder, _, names in os.walk(root):
            found.update(Path(folder) / name for name in names)
    return found
