// The client of the QingLong 3 launcher protocol, as far as its tests need one: it starts weir as
// that client does, and it reads records as strictly as that client does.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

export const VARIABLES = [
  'QL3_RECEIPT_RUN_ID',
  'QL3_RECEIPT_ATTEMPT_ID',
  'QL3_RECEIPT_CALLBACK_SEQUENCE',
  'QL3_RECEIPT_CALLBACK_TOKEN',
  'QL3_RECEIPT_STARTED_AT_MS',
  'QL3_RECEIPT_TARGET',
  'QL3_RECEIPT_TEMPORARY',
  'QL3_LAUNCH_SHELL',
  'QL3_LAUNCH_SHELL_COMMAND',
  'QL3_OUTPUT_QUOTA_FIFO',
  'QL3_OUTPUT_QUOTA_REMAINING_BYTES',
  'QL3_OUTPUT_MAXIMUM_BYTES',
  'QL3_OUTPUT_ARTIFACT_ID',
  'QL3_OUTPUT_TRUNCATION_TARGET',
  'QL3_OUTPUT_TRUNCATION_TEMPORARY',
];

const FACT_KEYS = [
  'schemaVersion', 'runId', 'attemptId', 'logArtifactId', 'maximumBytes', 'quotaReached',
  'observedAtMs',
];
const RECEIPT_KEYS = [
  'schemaVersion', 'runId', 'attemptId', 'callbackSequence', 'token', 'startedAtMs',
  'finishedAtMs', 'exitCode',
];
const FACT_LIMIT_BYTES = 1024;
const RECEIPT_LIMIT_BYTES = 4096;

export const MINIMUM_QUOTA_BYTES = 65_536;
export const MAXIMUM_QUOTA_BYTES = 1_073_741_824;

// Far more than the slowest machine needs: it only tells "never" from "late".
const DEADLINE_MS = 60_000;
const PAUSE_MS = 2;

let attempts = 0;
const groups = new Set();
const scratches = new Set();

// Whatever ends this program early, an interrupt included, nothing of it may stay behind.
process.on('exit', () => {
  groups.forEach((group) => signalGroup(group, 'SIGKILL'));
  scratches.forEach(remove);
});
for (const signal of isMainThread ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : []) {
  process.once(signal, () => process.exit(1));
}

// One attempt of one run: its place on disk, its variables and its process. The options:
//   words | command   the job in argv mode (or a function that makes it) | in shell mode
//   parts             the words after `ql3`, in the place of those that the job makes
//   quota             false: no output quota (default true)
//   output            'log' or 'null', what descriptors 1 and 2 are
//   already           what the log holds before
//   keepsLogOpen      the client closes its descriptor of the log at the very end only
//   maximum           the quota in bytes; what remains of it follows from `already`
//   environment       what the client chose besides the variables of the protocol
//   set, unset        changes to the variables of the protocol
//   before, prefix    shell commands before the `exec` of the script, and words after it
//   folder, flat      an odd name of the place; records and log in one directory
export class Attempt {
  constructor(t, options = {}) {
    const { folder = 'place', flat = false, ...rest } = options;
    attempts += 1;
    this.number = attempts;
    this.options = {
      quota: true,
      output: 'log',
      already: Buffer.alloc(0),
      maximum: MINIMUM_QUOTA_BYTES,
      environment: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      before: '',
      prefix: '',
      ...rest,
    };
    this.scratch = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'weir-ql3-'));
    scratches.add(this.scratch);
    t.after(() => this.cleanUp());
    this.lay(path.join(this.scratch, folder), flat);
    if (typeof rest.words === 'function') {
      this.options.words = rest.words(this);
    }
    this.started = false;
    this.openLogs = [];
    this.variables = this.validVariables();
    Object.assign(this.variables, options.set);
    for (const name of options.unset ?? []) {
      delete this.variables[name];
    }
    fs.writeFileSync(this.logPath, this.options.already, { mode: 0o600 });
  }

  lay(base, flat) {
    this.base = base;
    this.outputs = path.join(base, 'outputs');
    this.receipts = flat ? this.outputs : path.join(base, 'receipts');
    this.work = path.join(base, 'work');
    for (const directory of [this.outputs, this.receipts, this.work]) {
      fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    }
    this.artifactId = `local-${this.number.toString(16).padStart(30, '0')}`;
    this.logPath = path.join(this.outputs, `${this.artifactId}.log`);
    this.fifoPath = path.join(this.outputs, `.${this.artifactId}.fifo`);
    this.factPath = path.join(this.outputs, `.${this.artifactId}.truncated.json`);
    this.factTemporary = path.join(this.outputs, `.${this.artifactId}.truncated.tmp`);
    this.receiptPath = path.join(this.receipts, `attempt-${this.number}.json`);
    this.receiptTemporary = path.join(this.receipts, `.attempt-${this.number}.tmp`);
    this.scriptPath = path.join(this.scratch, 'script');
  }

  validVariables() {
    const { quota, command, maximum, already } = this.options;
    return {
      QL3_RECEIPT_RUN_ID: `run-${this.number}`,
      QL3_RECEIPT_ATTEMPT_ID: `attempt-${this.number}`,
      QL3_RECEIPT_CALLBACK_SEQUENCE: String(this.number),
      QL3_RECEIPT_CALLBACK_TOKEN: `secret_${this.number}-`.padEnd(43, 'kZ9'),
      QL3_RECEIPT_STARTED_AT_MS: String(Date.now()),
      QL3_RECEIPT_TARGET: this.receiptPath,
      QL3_RECEIPT_TEMPORARY: this.receiptTemporary,
      ...(command !== undefined && {
        QL3_LAUNCH_SHELL: '/bin/sh',
        QL3_LAUNCH_SHELL_COMMAND: command,
      }),
      ...(quota && {
        QL3_OUTPUT_QUOTA_FIFO: this.fifoPath,
        QL3_OUTPUT_QUOTA_REMAINING_BYTES: String(maximum - already.length),
        QL3_OUTPUT_MAXIMUM_BYTES: String(maximum),
        QL3_OUTPUT_ARTIFACT_ID: this.artifactId,
        QL3_OUTPUT_TRUNCATION_TARGET: this.factPath,
        QL3_OUTPUT_TRUNCATION_TEMPORARY: this.factTemporary,
      }),
    };
  }

  // Starts weir the way the client does: a session of its own, the log as 1 and 2 in one
  // description, and a script as descriptor 3 that hands over to weir.
  start() {
    const { output, words, command, before, prefix } = this.options;
    const parts = this.options.parts ?? (command === undefined ? ['argv', ...words] : ['shell']);
    const weir = `'${process.env.WEIR_BIN.replaceAll("'", "'\\''")}'`;
    this.script = `${before && `${before}; `}exec ${prefix} ${weir} ql3 "$@"\n`;
    const { O_WRONLY, O_APPEND, O_CREAT } = fs.constants;
    const log = output === 'null'
      ? fs.openSync('/dev/null', O_WRONLY)
      : fs.openSync(this.logPath, O_WRONLY | O_APPEND | O_CREAT, 0o600);
    this.startedClock = Date.now();
    this.endedClock = undefined;
    this.launch(parts, log);
    if (this.options.keepsLogOpen) {
      this.openLogs.push(log);
    } else {
      fs.closeSync(log);
    }
    this.started = true;
    this.child.once('exit', () => { this.endedClock = Date.now(); });
    return this;
  }

  launch(words, output) {
    fs.writeFileSync(this.scriptPath, this.script);
    const script = fs.openSync(this.scriptPath, 'r');
    this.child = spawn('/bin/sh', ['/dev/fd/3', ...words], {
      cwd: this.work,
      detached: true,
      env: { ...this.options.environment, ...this.variables },
      stdio: ['ignore', output, output, script],
    });
    fs.closeSync(script);
    this.pid = this.child.pid;
    groups.add(this.pid);
    this.exit = once(this.child, 'exit').then(([code, signal]) => ({ code, signal }));
    // A start that failed is told by `ended`; until then it must not end this program.
    this.exit.catch(() => {});
  }

  // What the job prints when it is started in the same way, but without weir.
  async bare() {
    const { words, command, before, prefix } = this.options;
    this.script = `${before && `${before}; `}exec ${prefix} "$@"\n`;
    const file = path.join(this.scratch, 'bare');
    const output = fs.openSync(file, 'w');
    this.launch(words ?? [this.variables.QL3_LAUNCH_SHELL, '-c', command], output);
    fs.closeSync(output);
    assert.deepEqual(await this.ended(), { code: 0, signal: null });
    return fs.readFileSync(file);
  }

  // How weir ended, as { code, signal }.
  async ended() {
    const stop = new AbortController();
    const late = pause(DEADLINE_MS, 'late', { signal: stop.signal }).catch(() => {});
    const end = await Promise.race([this.exit, late]);
    stop.abort();
    assert.notEqual(end, 'late', `the attempt has not ended within ${DEADLINE_MS} ms`);
    return end;
  }

  // Starts weir if need be, and sees it exit with this code.
  async exits(code) {
    if (!this.started) {
      this.start();
    }
    assert.deepEqual(await this.ended(), { code, signal: null }, 'how weir ended');
  }

  // Waits for something that a running attempt does; an attempt that has ended cannot do it any
  // more, and the test need not wait for the deadline to say so.
  until(what, look) {
    return until(what, () => {
      const over = this.child.exitCode !== null || this.child.signalCode !== null;
      const seen = look();
      assert.ok(seen || !over, `weir has ended before this was seen: ${what}`);
      return seen;
    });
  }

  untilMade(name) {
    return this.until(`the job makes ${name}`, () => this.made(name));
  }

  make(name, content = '') {
    fs.writeFileSync(path.join(this.work, name), content);
  }

  made(name) {
    return present(path.join(this.work, name));
  }

  read(name) {
    return fs.readFileSync(path.join(this.work, name), 'utf8');
  }

  // An executable of the job's, and where it is.
  tool(name, content, mode = 0o700) {
    const file = path.join(this.work, name);
    fs.writeFileSync(file, content);
    fs.chmodSync(file, mode);
    return file;
  }

  logBytes() {
    return fs.readFileSync(this.logPath);
  }

  signal(signal) {
    process.kill(-this.pid, signal);
  }

  // The whole of what an attempt has left: these bytes in the log, these records, nothing else.
  // `fact` and `receipt` are the values that matter, or null for no such record, or the bytes of
  // one that was there before.
  leaves({ log, fact = null, receipt = null }) {
    sameBytes(this.logBytes(), Buffer.from(log), 'the log');
    const files = [this.logPath];
    files.push(...(fact === null ? [] : [this.factPath]));
    files.push(...(receipt === null ? [] : [this.receiptPath]));
    const directories = [...new Set([this.outputs, this.receipts])];
    const found = directories.flatMap((directory) => listing(directory));
    assert.deepEqual(found.sort(), files.sort(), 'the files that are there');
    if (Buffer.isBuffer(fact)) {
      sameBytes(fs.readFileSync(this.factPath), fact, 'the fact of before');
    } else if (fact !== null) {
      this.checkFact(fact);
    }
    if (Buffer.isBuffer(receipt)) {
      sameBytes(fs.readFileSync(this.receiptPath), receipt, 'the receipt of before');
    } else if (receipt !== null) {
      this.checkReceipt(receipt);
    }
  }

  checkFact(quotaReached) {
    const fact = readRecord(this.factPath, FACT_LIMIT_BYTES, FACT_KEYS);
    assert.deepEqual(fact, {
      schemaVersion: 1,
      runId: this.variables.QL3_RECEIPT_RUN_ID,
      attemptId: this.variables.QL3_RECEIPT_ATTEMPT_ID,
      logArtifactId: this.variables.QL3_OUTPUT_ARTIFACT_ID,
      maximumBytes: Number(this.variables.QL3_OUTPUT_MAXIMUM_BYTES),
      quotaReached,
      observedAtMs: fact.observedAtMs,
    });
    isBetween(fact.observedAtMs, this.startedClock, this.endedClock ?? Date.now(), 'observedAtMs');
    return fact;
  }

  checkReceipt(exitCode) {
    const receipt = readRecord(this.receiptPath, RECEIPT_LIMIT_BYTES, RECEIPT_KEYS);
    const startedAtMs = Number(this.variables.QL3_RECEIPT_STARTED_AT_MS);
    assert.deepEqual(receipt, {
      schemaVersion: 1,
      runId: this.variables.QL3_RECEIPT_RUN_ID,
      attemptId: this.variables.QL3_RECEIPT_ATTEMPT_ID,
      callbackSequence: Number(this.variables.QL3_RECEIPT_CALLBACK_SEQUENCE),
      token: this.variables.QL3_RECEIPT_CALLBACK_TOKEN,
      startedAtMs,
      finishedAtMs: receipt.finishedAtMs,
      exitCode,
    });
    const earliest = Math.max(startedAtMs, this.startedClock);
    const latest = Math.max(startedAtMs, this.endedClock ?? Date.now());
    isBetween(receipt.finishedAtMs, earliest, latest, 'finishedAtMs');
    return receipt;
  }

  async cleanUp() {
    if (this.child !== undefined) {
      signalGroup(this.pid, 'SIGKILL');
      await this.ended();
      groups.delete(this.pid);
    }
    this.openLogs.forEach((log) => fs.closeSync(log));
    remove(this.scratch);
    scratches.delete(this.scratch);
  }
}

async function until(what, look) {
  const deadline = performance.now() + DEADLINE_MS;
  while (!look()) {
    assert.ok(performance.now() < deadline, `not seen within ${DEADLINE_MS} ms: ${what}`);
    await pause(PAUSE_MS);
  }
}

function signalGroup(group, signal) {
  try {
    process.kill(-group, signal);
  } catch (error) {
    assert.equal(error.code, 'ESRCH');
  }
}

function remove(scratch) {
  openUp(scratch);
  // What was killed may be gone a moment later only, and make a last file before.
  fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
}

// A test may have taken the write permission from a directory.
function openUp(directory) {
  fs.chmodSync(directory, 0o700);
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) {
      openUp(path.join(directory, entry.name));
    }
  }
}

// A record as the client's reader takes it: everything that is not exactly so is an error.
function readRecord(file, limitBytes, keys) {
  const stat = fs.lstatSync(file);
  assert.ok(stat.isFile(), `${file} is not a regular file`);
  assert.equal((stat.mode & 0o7777).toString(8), '600', `mode of ${file}`);
  assert.equal(stat.uid, process.getuid(), `owner of ${file}`);
  assert.equal(stat.nlink, 1, `links of ${file}`);
  assert.ok(stat.size <= limitBytes, `${file} has ${stat.size} bytes`);
  const bytes = fs.readFileSync(file);
  const record = JSON.parse(bytes.toString('utf8'));
  const canonical = JSON.stringify(Object.fromEntries(keys.map((key) => [key, record[key]])));
  sameBytes(bytes, Buffer.from(canonical), file);
  return record;
}

function isBetween(value, least, most, name) {
  assert.ok(Number.isSafeInteger(value), `${name} is ${value}`);
  assert.ok(least <= value && value <= most, `${name}: ${least} <= ${value} <= ${most}`);
}

export function present(file) {
  return fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

function listing(directory) {
  return fs.readdirSync(directory).map((name) => path.join(directory, name)).sort();
}

// Everything below a directory: names, kinds, modes, links and contents.
export function snapshot(directory) {
  return listing(directory).flatMap((file) => {
    const stat = fs.lstatSync(file);
    const entry = { file, inode: stat.ino, mode: stat.mode.toString(8), links: stat.nlink };
    if (stat.isDirectory()) {
      return [entry, ...snapshot(file)];
    }
    return [{ ...entry, content: stat.isFile() ? fs.readFileSync(file, 'latin1') : null }];
  });
}

// Whole contents, without a page of bytes when they differ.
export function sameBytes(seen, expected, what) {
  if (seen.equals(expected)) {
    return;
  }
  let at = 0;
  while (at < Math.min(seen.length, expected.length) && seen[at] === expected[at]) {
    at += 1;
  }
  const near = (bytes) => JSON.stringify(bytes.subarray(at, at + 200).toString('latin1'));
  assert.fail(
    `${what}: ${seen.length} bytes, expected ${expected.length}; from byte ${at} on ` +
      `${near(seen)}, expected ${near(expected)}`,
  );
}

// Bytes of every value in an order that no other length shares by chance.
export function payload(lengthBytes) {
  const bytes = Buffer.alloc(lengthBytes);
  let state = 0x2545f491 ^ lengthBytes;
  for (let at = 0; at < lengthBytes; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state;
  }
  return bytes;
}

const [WANTED, LOOKING, THROUGH, STOP] = [0, 1, 2, 3];

// The client looks at any moment, so this looks at every moment it can: a thread that does nothing
// but read the records of one attempt until it has seen both.
export class Watch {
  constructor(t, watched) {
    const pairs = watched.map(({ factPath, receiptPath }) => ({ factPath, receiptPath }));
    // [the attempt to look at, the one that is looked at, how many were seen through, stop]
    this.shared = new Int32Array(new SharedArrayBuffer(16));
    this.shared[LOOKING] = -1;
    this.worker = new Worker(new URL(import.meta.url), {
      workerData: { shared: this.shared, pairs },
    });
    this.report = once(this.worker, 'message').then(([report]) => report);
    this.report.catch(() => {});
    t.after(() => this.worker.terminate());
  }

  // Looks at one attempt from now on, which has not begun yet.
  async lookAt(index) {
    Atomics.store(this.shared, WANTED, index);
    await until('a look', () => Atomics.load(this.shared, LOOKING) === index);
  }

  seenThrough(index) {
    return until('both records', () => Atomics.load(this.shared, THROUGH) > index);
  }

  // For every attempt what was ever seen of its fact and its receipt, and the receipts that were
  // there before their facts.
  async stop() {
    Atomics.store(this.shared, STOP, 1);
    return this.report;
  }
}

function watch({ shared, pairs }) {
  const seen = pairs.map(() => ({ fact: new Set(), receipt: new Set(), early: 0 }));
  while (Atomics.load(shared, STOP) === 0) {
    const index = Atomics.load(shared, WANTED);
    const of = seen[index];
    // In this order: a fact that is missing after its receipt was seen had been late.
    const receipt = look(pairs[index].receiptPath);
    const fact = look(pairs[index].factPath);
    if (receipt !== undefined) {
      of.receipt.add(receipt);
      of.early += fact === undefined ? 1 : 0;
    }
    if (fact !== undefined) {
      of.fact.add(fact);
    }
    if (receipt !== undefined && fact !== undefined) {
      Atomics.store(shared, THROUGH, index + 1);
    }
    Atomics.store(shared, LOOKING, index);
  }
  return seen;
}

function look(file) {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false });
  if (stat === undefined) {
    return undefined;
  }
  const mode = (stat.mode & 0o7777).toString(8);
  return `inode ${stat.ino} mode ${mode} links ${stat.nlink}: ${fs.readFileSync(file, 'latin1')}`;
}

if (!isMainThread) {
  parentPort.postMessage(watch(workerData));
}
