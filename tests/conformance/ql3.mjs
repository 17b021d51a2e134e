// `weir ql3` against the QingLong 3 launcher protocol, seen from the client's side.
//
// WEIR_BIN=/path/to/weir node tests/conformance/ql3.mjs
//
// Linux, Node 18 or later, and an ordinary user: nothing is hidden from root, so that the tests of
// what a job cannot reach would say nothing.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {
  Attempt, MAXIMUM_QUOTA_BYTES, MINIMUM_QUOTA_BYTES, VARIABLES, Watch,
  payload, present, sameBytes, snapshot,
} from './client.mjs';

function giveUp(reason) {
  console.error(`ql3.mjs: ${reason}`);
  process.exit(2);
}

if (process.getuid() === 0) {
  giveUp('run it as an ordinary user: root may read everything, so that nothing would be tested');
}
if (!path.isAbsolute(process.env.WEIR_BIN ?? '')) {
  giveUp('WEIR_BIN must be the absolute path of weir');
}

const QUOTA = MINIMUM_QUOTA_BYTES;
const LARGEST = 2 ** 53 - 1;
const sh = (script, ...args) => ['/bin/sh', '-c', script, 'sh', ...args];
// One more command after it keeps a shell from becoming what it runs.
const OWN_WORDS = 'cat /proc/$$/cmdline; true';
const WAIT_FOR_GO = ': > ready; until [ -e go ]; do sleep 0.01; done';
const nulEnded = (...words) => Buffer.from(words.map((word) => `${word}\0`).join(''));

// ---- The job's words ----------------------------------------------------------------------------

test('argv: spaces, lines, quotes, empty words and options reach the job unchanged', async (t) => {
  const words = sh(
    OWN_WORDS, 'two words', 'two\nlines\n', '', '$HOME `id` "quoted" \'too\' \\', '*', '--', '-x',
    '--help', '--version', 'ü€😀', '',
  );
  const attempt = new Attempt(t, { words });
  await attempt.exits(0);
  attempt.leaves({ log: nulEnded(...words), fact: false, receipt: 0 });
});

test('argv: words that are not UTF-8 reach the job unchanged', async (t) => {
  const words = sh(OWN_WORDS);
  // Only a shell can make such a word here: this program has no strings that are not UTF-8.
  const before = 'set -- "$@" "$(printf \'\\377\\376/\\300\')" "$(printf \'\\200\')"';
  const attempt = new Attempt(t, { words, before });
  await attempt.exits(0);
  const odd = Buffer.from([0xff, 0xfe, 0x2f, 0xc0, 0, 0x80, 0]);
  attempt.leaves({ log: Buffer.concat([nulEnded(...words), odd]), fact: false, receipt: 0 });
});

test('argv: a thousand words reach the job', async (t) => {
  const words = sh(OWN_WORDS, ...Array.from({ length: 1000 }, (_, index) => `word ${index}`));
  const attempt = new Attempt(t, { words });
  await attempt.exits(0);
  attempt.leaves({ log: nulEnded(...words), fact: false, receipt: 0 });
});

test('argv: a command that looks like an option is looked up in PATH', async (t) => {
  const attempt = new Attempt(t, { words: ['--version', '--help'] });
  attempt.tool('--version', '#!/bin/sh\necho "not weir: $*"\n');
  attempt.options.environment.PATH += `:${attempt.work}`;
  await attempt.exits(0);
  attempt.leaves({ log: 'not weir: --help\n', fact: false, receipt: 0 });
});

test('argv: a script without #! runs as a shell would run it', async (t) => {
  const attempt = new Attempt(t, { words: ['./script', 'a b'] });
  attempt.tool('script', 'printf "<%s>" "$0" "$@"\nexit 6\n');
  await attempt.exits(6);
  attempt.leaves({ log: '<./script><a b>', fact: false, receipt: 6 });
});

test('shell: the job is SHELL -c COMMAND and nothing else', async (t) => {
  const attempt = new Attempt(t, { command: OWN_WORDS });
  await attempt.exits(0);
  attempt.leaves({ log: nulEnded('/bin/sh', '-c', OWN_WORDS), fact: false, receipt: 0 });
});

for (const [title, command] of [
  ['an empty command', ''],
  ['quotes and expansions', 'printf "%s" "a  b" \'$HOME\' `id` $(id) \\ "it\'s"'],
  ['newlines', 'echo 1\n\necho 2\n'],
  ['a leading hyphen', '--help -c x'],
  ['a hundred thousand letters', ': '.padEnd(100_000, 'x')],
]) {
  test(`shell: the shell gets ${title} as one word`, async (t) => {
    const attempt = new Attempt(t, { command, maximum: 2 * QUOTA });
    const shell = attempt.tool('a shell', '#!/bin/sh\ncat /proc/$$/cmdline\nexit 3\n');
    attempt.variables.QL3_LAUNCH_SHELL = shell;
    await attempt.exits(3);
    const log = nulEnded('/bin/sh', shell, '-c', command);
    attempt.leaves({ log, fact: false, receipt: 3 });
  });
}

test('shell: a command that is not UTF-8 reaches the shell unchanged', async (t) => {
  const before = 'QL3_LAUNCH_SHELL_COMMAND="printf %s $(printf \'\\377\\376\')"';
  const attempt = new Attempt(t, { command: ':', before });
  await attempt.exits(0);
  attempt.leaves({ log: Buffer.from([0xff, 0xfe]), fact: false, receipt: 0 });
});

test('shell: an empty command is run, and succeeds', async (t) => {
  const attempt = new Attempt(t, { command: '' });
  await attempt.exits(0);
  attempt.leaves({ log: '', fact: false, receipt: 0 });
});

test('shell: the command\'s quoting, output and exit code are the shell\'s', async (t) => {
  const command = 'printf "%s|" "a  b" \'$HOME\' "it\'s"; echo err >&2; exit 4';
  const attempt = new Attempt(t, { command });
  await attempt.exits(4);
  attempt.leaves({ log: 'a  b|$HOME|it\'s|err\n', fact: false, receipt: 4 });
});

test('shell: without a quota the command runs as well', async (t) => {
  const attempt = new Attempt(t, { command: 'echo out; exit 4', quota: false });
  await attempt.exits(4);
  attempt.leaves({ log: 'out\n', receipt: 4 });
});

// ---- Refusals -----------------------------------------------------------------------------------

const MARK = ': > marker; echo output';

// A refusal is 125, and then everything is as it was: no job, no record, no FIFO, no log line.
async function isRefused(t, options = {}, change = () => {}) {
  const attempt = new Attempt(t, { words: sh(MARK), ...options });
  change(attempt.variables, attempt);
  const before = snapshot(attempt.base);
  await attempt.exits(125);
  assert.deepEqual(snapshot(attempt.base), before);
}

for (const [title, parts] of [
  ['no words at all', []],
  ['argv without a command', ['argv']],
  ['an unknown mode', ['run', ...sh(MARK)]],
  ['a mode in capitals', ['ARGV', ...sh(MARK)]],
  ['an empty mode', ['', ...sh(MARK)]],
]) {
  test(`refused: ${title}`, (t) => isRefused(t, { parts }));
}

test('refused: shell with a further word', (t) =>
  isRefused(t, { command: MARK, parts: ['shell', 'word'] }));

test('refused: shell with an empty further word', (t) =>
  isRefused(t, { command: MARK, parts: ['shell', ''] }));

const ALWAYS = VARIABLES.slice(0, 7);
const QUOTA_VARIABLES = VARIABLES.slice(10);

for (const name of [...ALWAYS, ...QUOTA_VARIABLES]) {
  test(`refused: ${name} is missing`, (t) => isRefused(t, { unset: [name] }));
  test(`refused: ${name} is empty`, (t) => isRefused(t, { set: { [name]: '' } }));
}

for (const name of ALWAYS) {
  test(`refused without a quota: ${name} is missing`, (t) =>
    isRefused(t, { unset: [name], quota: false }));
}

test('refused without an output plan: a token that is missing', (t) =>
  isRefused(t, { unset: ['QL3_RECEIPT_CALLBACK_TOKEN'], quota: false, output: 'null' }));

for (const name of ['QL3_LAUNCH_SHELL', 'QL3_LAUNCH_SHELL_COMMAND']) {
  test(`refused: shell mode, ${name} is missing`, (t) =>
    isRefused(t, { command: MARK, unset: [name] }));
}

test('refused: a shell that is empty', (t) =>
  isRefused(t, { command: MARK, set: { QL3_LAUNCH_SHELL: '' } }));

test('refused: a shell that is not an absolute path', (t) =>
  isRefused(t, { command: MARK, set: { QL3_LAUNCH_SHELL: 'sh' } }));

const NOT_AN_ID = [
  '.a', '_a', ':a', '-a', ' a', 'a ', 'a b', 'a/b', 'a\n', '\na', 'a\nb', 'a\tb', 'ä', 'aä',
  'a"b', 'a\\b', 'a+b', 'a@b', 'a'.repeat(129), 'a'.repeat(4096),
];
const NOT_A_TOKEN = [
  'a'.repeat(31), 'a'.repeat(129), '', `${'a'.repeat(31)}.`, `${'a'.repeat(31)}:`,
  `${'a'.repeat(31)}=`, `${'a'.repeat(31)}+`, `${'a'.repeat(31)}/`, `${'a'.repeat(31)} `,
  `${'a'.repeat(32)}\n`, `\n${'a'.repeat(32)}`, 'ä'.repeat(32), `${'a'.repeat(31)}"`,
];
const NOT_A_NUMBER = [
  ' ', '-1', '+1', '1 ', ' 1', '1\n', '\n1', '1.0', '1.', '.1', '1e3', '0x1', '1_000', '1,000',
  'one', 'NaN', '١', '１',
];
const TOO_LARGE = ['9007199254740992', '18446744073709551617', '1'.repeat(400)];

const REFUSED_VALUES = {
  QL3_RECEIPT_RUN_ID: NOT_AN_ID,
  QL3_RECEIPT_ATTEMPT_ID: NOT_AN_ID,
  QL3_RECEIPT_CALLBACK_SEQUENCE: [...NOT_A_NUMBER, ...TOO_LARGE, '0', '00', '01', '007', '-0'],
  QL3_RECEIPT_CALLBACK_TOKEN: NOT_A_TOKEN,
  QL3_RECEIPT_STARTED_AT_MS: [...NOT_A_NUMBER, ...TOO_LARGE],
  QL3_OUTPUT_QUOTA_REMAINING_BYTES: [
    ...NOT_A_NUMBER, ...TOO_LARGE, String(QUOTA + 1), String(2 ** 32), String(2 ** 32 + 1),
  ],
  QL3_OUTPUT_MAXIMUM_BYTES: [
    ...NOT_A_NUMBER, ...TOO_LARGE, '0', '1', String(QUOTA - 1), String(MAXIMUM_QUOTA_BYTES + 1),
    String(2 ** 32 + QUOTA), '64K', '65536B',
  ],
  QL3_OUTPUT_ARTIFACT_ID: [
    'a', 'local-', `local-${'0'.repeat(29)}`, `local-${'0'.repeat(31)}`, `local_${'0'.repeat(30)}`,
    `local-${'0'.repeat(29)}g`, `local-${'0'.repeat(29)}A`, `Local-${'0'.repeat(30)}`,
    `log-${'0'.repeat(30)}`, `wwlog-${'0'.repeat(30)}`, '0'.repeat(30), ` local-${'0'.repeat(30)}`,
    `local-${'0'.repeat(30)}\n`, `local-${'0'.repeat(29)}\n`, `local-wlog-${'0'.repeat(30)}`,
  ],
};

for (const [name, values] of Object.entries(REFUSED_VALUES)) {
  for (const value of values) {
    const text = JSON.stringify(value);
    const title = text.length <= 50 ? text : `${text.slice(0, 40)}… (${value.length} letters)`;
    test(`refused: ${name} is ${title}`, (t) => isRefused(t, { set: { [name]: value } }));
  }
}

for (const name of ['QL3_RECEIPT_RUN_ID', 'QL3_RECEIPT_ATTEMPT_ID']) {
  test(`refused: ${name} is not UTF-8`, (t) =>
    isRefused(t, { before: `${name}="$(printf 'a\\377')"` }));
}

test('refused: a token that is not UTF-8', (t) =>
  isRefused(t, { before: 'QL3_RECEIPT_CALLBACK_TOKEN="$(printf \'%040d\\377\')"' }));

for (const [target, temporary] of [
  ['QL3_RECEIPT_TARGET', 'QL3_RECEIPT_TEMPORARY'],
  ['QL3_OUTPUT_TRUNCATION_TARGET', 'QL3_OUTPUT_TRUNCATION_TEMPORARY'],
]) {
  for (const name of [target, temporary]) {
    test(`refused: ${name} is relative`, (t) =>
      isRefused(t, {}, (variables) => {
        variables[name] = path.basename(variables[name]);
      }));

    test(`refused: ${name} is in another directory`, (t) =>
      isRefused(t, {}, (variables, attempt) => {
        variables[name] = path.join(attempt.work, path.basename(variables[name]));
      }));

    test(`refused: ${name} is in a directory below`, (t) =>
      isRefused(t, {}, (variables) => {
        const below = path.join(path.dirname(variables[name]), 'below');
        fs.mkdirSync(below);
        variables[name] = path.join(below, path.basename(variables[name]));
      }));
  }

  test(`refused: ${target} and ${temporary} are both relative`, (t) =>
    isRefused(t, { set: { [target]: 'target', [temporary]: 'temporary' } }));
}

test('refused: the FIFO is relative', (t) =>
  isRefused(t, { set: { QL3_OUTPUT_QUOTA_FIFO: 'fifo' } }));

test('refused: the FIFO is in another directory than the truncation target', (t) =>
  isRefused(t, {}, (variables, attempt) => {
    variables.QL3_OUTPUT_QUOTA_FIFO = path.join(attempt.receipts, 'fifo');
  }));

test('refused: a log that holds bytes keeps them as they are', (t) =>
  isRefused(t, { already: payload(1000), unset: ['QL3_OUTPUT_ARTIFACT_ID'] }));

test('refused: what an earlier attempt has left stays as it is', (t) =>
  isRefused(t, { unset: ['QL3_OUTPUT_ARTIFACT_ID'] }, (variables, attempt) => {
    fs.writeFileSync(attempt.factPath, 'fact', { mode: 0o600 });
    fs.writeFileSync(attempt.receiptPath, 'receipt', { mode: 0o600 });
    fs.writeFileSync(attempt.factTemporary, 'temporary', { mode: 0o600 });
    execFileSync('mkfifo', ['-m', '600', attempt.fifoPath]);
  }));

// ---- What is accepted ---------------------------------------------------------------------------

const EVERY_LETTER = 'aZ09._:-';

for (const [name, values] of Object.entries({
  QL3_RECEIPT_RUN_ID: ['a', 'Z', '0', EVERY_LETTER, 'r'.repeat(128)],
  QL3_RECEIPT_ATTEMPT_ID: ['a', 'Z', '0', EVERY_LETTER, 'r'.repeat(128)],
  QL3_RECEIPT_CALLBACK_SEQUENCE: ['1', '10', String(LARGEST)],
  QL3_RECEIPT_CALLBACK_TOKEN: ['-'.repeat(32), '_'.repeat(128), 'aZ09_-'.repeat(10)],
  QL3_RECEIPT_STARTED_AT_MS: ['0', '1', String(LARGEST)],
  QL3_OUTPUT_ARTIFACT_ID: [`local-${'f'.repeat(30)}`, 'wlog-0123456789abcdef0123456789abcd'],
})) {
  for (const value of values) {
    const title = value.length <= 40 ? value : `${value.length} letters long`;
    test(`accepted: ${name} is ${title}`, async (t) => {
      const attempt = new Attempt(t, { words: sh('echo output'), set: { [name]: value } });
      await attempt.exits(0);
      attempt.leaves({ log: 'output\n', fact: false, receipt: 0 });
    });
  }
}

test('accepted: every value at its longest, and the records keep within their sizes', async (t) => {
  const attempt = new Attempt(t, {
    words: sh('echo output'),
    maximum: MAXIMUM_QUOTA_BYTES,
    set: {
      QL3_RECEIPT_RUN_ID: 'r'.repeat(128),
      QL3_RECEIPT_ATTEMPT_ID: 'a'.repeat(128),
      QL3_RECEIPT_CALLBACK_SEQUENCE: String(LARGEST),
      QL3_RECEIPT_CALLBACK_TOKEN: 't'.repeat(128),
      QL3_RECEIPT_STARTED_AT_MS: String(LARGEST),
    },
  });
  await attempt.exits(0);
  attempt.leaves({ log: 'output\n', fact: false, receipt: 0 });
});

for (const maximum of [MINIMUM_QUOTA_BYTES, MAXIMUM_QUOTA_BYTES]) {
  test(`accepted: a quota of ${maximum} bytes, of which everything remains`, async (t) => {
    const attempt = new Attempt(t, { words: sh('echo output'), maximum });
    await attempt.exits(0);
    attempt.leaves({ log: 'output\n', fact: false, receipt: 0 });
  });
}

test('accepted: nothing remains of the quota, and nothing is written', async (t) => {
  const already = payload(QUOTA);
  const attempt = new Attempt(t, { words: ['/bin/true'], already });
  await attempt.exits(0);
  attempt.leaves({ log: already, fact: false, receipt: 0 });
});

test('accepted: nothing remains of the quota, and one byte is written', async (t) => {
  const already = payload(QUOTA);
  const attempt = new Attempt(t, { words: sh('printf x; exit 2'), already });
  await attempt.exits(2);
  attempt.leaves({ log: already, fact: true, receipt: 2 });
});

test('accepted: a place whose path has spaces, quotes, newlines and other letters', async (t) => {
  const folder = 'a b/"c" \'d\'/e\nf/$HOME `id` \\/ü€😀';
  const attempt = new Attempt(t, { words: sh('echo output'), folder });
  await attempt.exits(0);
  attempt.leaves({ log: 'output\n', fact: false, receipt: 0 });
});

test('accepted: log, FIFO, fact and receipt in one directory', async (t) => {
  const attempt = new Attempt(t, { words: sh('echo output'), flat: true });
  await attempt.exits(0);
  attempt.leaves({ log: 'output\n', fact: false, receipt: 0 });
});

for (const [title, options] of [
  ['missing', { unset: ['QL3_OUTPUT_QUOTA_FIFO'] }],
  ['empty', { set: { QL3_OUTPUT_QUOTA_FIFO: '' } }],
]) {
  test(`the other quota variables do not matter when the FIFO is ${title}`, async (t) => {
    const attempt = new Attempt(t, { words: sh('readlink /proc/self/fd/1; exit 5'), ...options });
    Object.assign(attempt.variables, {
      QL3_OUTPUT_QUOTA_REMAINING_BYTES: 'nonsense',
      QL3_OUTPUT_MAXIMUM_BYTES: '1',
      QL3_OUTPUT_ARTIFACT_ID: '',
      QL3_OUTPUT_TRUNCATION_TARGET: 'relative',
    });
    await attempt.exits(5);
    attempt.leaves({ log: `${attempt.logPath}\n`, receipt: 5 });
  });
}

test('the shell variables do not matter in argv mode', async (t) => {
  const set = { QL3_LAUNCH_SHELL: 'relative', QL3_LAUNCH_SHELL_COMMAND: 'exit 9' };
  const attempt = new Attempt(t, { words: sh('exit 5'), set });
  await attempt.exits(5);
  attempt.leaves({ log: '', fact: false, receipt: 5 });
});

test('variables of weir run do not matter', async (t) => {
  const attempt = new Attempt(t, { words: sh('echo output; exit 5') });
  Object.assign(attempt.options.environment, {
    WEIR_QUOTA: 'nonsense', WEIR_LOG: '/nowhere/log', WEIR_STATUS_FD: '77', WEIR_TEE: '1',
    WEIR_AFTER_EXIT: 'nonsense', WEIR_SHELL: 'exit 9', WEIR_FRESH: '1', WEIR_CHDIR: '/nowhere',
  });
  await attempt.exits(5);
  attempt.leaves({ log: 'output\n', fact: false, receipt: 5 });
});

// ---- The job's environment ----------------------------------------------------------------------

const ENVIRONMENT = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/nowhere',
  EMPTY: '',
  LINES_AND_SIGNS: 'a\nb=c\\ "d"',
  UNICODE: 'ü€😀',
  QL3_OTHER: '1',
  QL3_: '2',
  QL3_RECEIPT_TARGET_X: '3',
  QL3_OUTPUT_QUOTA: '4',
  ql3_receipt_run_id: '5',
  X_QL3_RECEIPT_RUN_ID: '6',
  WEIR_QUOTA: '7',
  WEIR_STATUS_FD: '77',
};
const BYTES = 'QL3_BYTES="$(printf \'\\377\\376\')"; export QL3_BYTES';

// `_` is what some shells set anew for every command, so the client's shell has one for weir.
function entries(environ) {
  const all = environ.toString('latin1').split('\0').filter((entry) => entry !== '');
  return all.filter((entry) => !entry.startsWith('_=')).sort();
}

async function losesTheFifteenOnly(attempt) {
  const has = new Set(VARIABLES);
  const before = entries(await attempt.bare());
  const expected = before.filter((entry) => !has.has(entry.slice(0, entry.indexOf('='))));
  await attempt.exits(0);
  assert.deepEqual(entries(attempt.logBytes()), expected);
  return { before, expected };
}

for (const mode of ['argv', 'shell']) {
  for (const quota of [true, false]) {
    const title = `${mode}, ${quota ? 'a' : 'no'} quota`;
    test(`${title}: the fifteen variables vanish from the environment, nothing else`, async (t) => {
      const job = mode === 'argv'
        ? { words: ['/bin/cat', '/proc/self/environ'] }
        : { command: 'anything' };
      const attempt = new Attempt(t, { ...job, quota, environment: ENVIRONMENT, before: BYTES });
      if (mode === 'shell') {
        // A shell may change its environment for what it runs, but not what it was started with.
        const shell = attempt.tool('sh', '#!/bin/sh\ncat /proc/$$/environ\n');
        attempt.variables.QL3_LAUNCH_SHELL = shell;
      }
      for (const name of VARIABLES) {
        attempt.variables[name] ??= name === 'QL3_OUTPUT_QUOTA_FIFO' ? '' : 'anything';
      }
      const { before, expected } = await losesTheFifteenOnly(attempt);
      assert.equal(before.length - expected.length, VARIABLES.length);
      const chosen = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
      for (const entry of chosen.map((text) => Buffer.from(text).toString('latin1'))) {
        assert.ok(expected.includes(entry), `the client's own ${entry}`);
      }
      assert.ok(expected.includes('QL3_BYTES=\xff\xfe'));
    });
  }
}

for (const [title, environment] of [
  ['an empty PATH', { PATH: '' }],
  ['no PATH', {}],
]) {
  test(`an absolute command runs with ${title}, and the job gets just that`, async (t) => {
    const attempt = new Attempt(t, { words: ['/bin/cat', '/proc/self/environ'], environment });
    await losesTheFifteenOnly(attempt);
    const bare = entries(attempt.logBytes()).filter((entry) => entry.startsWith('PATH='));
    assert.deepEqual(bare, Object.keys(environment).map((name) => `${name}=`));
  });

  test(`a shell command runs with ${title}`, async (t) => {
    const attempt = new Attempt(t, { command: 'echo "[$PATH]"', environment });
    const bare = await attempt.bare();
    await attempt.exits(0);
    attempt.leaves({ log: bare, fact: false, receipt: 0 });
  });
}

// ---- What the job gets --------------------------------------------------------------------------

// What this program was given beyond 0, 1 and 2 is the job's as well, but not the script. The
// listing has one descriptor of its own.
async function listsNoOther(attempt) {
  attempt.options.before = 'exec 3<&-';
  const log = await attempt.bare();
  assert.match(log.toString(), /^0\n1\n2\n/);
  attempt.options.before = '';
  await attempt.exits(0);
  attempt.leaves({ log, fact: attempt.options.quota ? false : null, receipt: 0 });
}

for (const quota of [true, false]) {
  const kind = quota ? 'a' : 'no';

  test(`argv, ${kind} quota: no descriptor but 0, 1 and 2 reaches the job`, (t) =>
    listsNoOther(new Attempt(t, { words: ['/bin/ls', '/proc/self/fd'], quota })));

  test(`shell, ${kind} quota: no descriptor but 0, 1 and 2 reaches the job`, (t) =>
    listsNoOther(new Attempt(t, { command: 'ls /proc/self/fd', quota })));
}

test('the job\'s descriptors are /dev/null and twice the FIFO', async (t) => {
  const words = sh('cd /proc/self/fd; readlink 0 1 2; stat -L -c %d:%i 0 1 2');
  const attempt = new Attempt(t, { words });
  await attempt.exits(0);
  const [, , , zero, one, two] = attempt.logBytes().toString().split('\n');
  assert.notEqual(zero, one);
  assert.equal(one, two);
  const links = ['/dev/null', attempt.fifoPath, attempt.fifoPath];
  attempt.leaves({ log: [...links, zero, one, two, ''].join('\n'), fact: false, receipt: 0 });
});

test('the job writes to a blocking, write-only end', async (t) => {
  const words = ['/bin/cat', '/proc/self/fdinfo/1', '/proc/self/fdinfo/2'];
  const attempt = new Attempt(t, { words });
  await attempt.exits(0);
  const flags = [...attempt.logBytes().toString().matchAll(/^flags:\s*(\d+)$/gm)];
  const { O_WRONLY, O_NONBLOCK } = fs.constants;
  const kinds = flags.map(([, octal]) => parseInt(octal, 8) & (3 | O_NONBLOCK));
  assert.deepEqual(kinds, [O_WRONLY, O_WRONLY]);
});

test('the FIFO is there before the job, 0600 while it runs, and gone at the end', async (t) => {
  const script = `test -p "$1" && echo there; ${WAIT_FOR_GO}`;
  const attempt = new Attempt(t, { words: ({ fifoPath }) => sh(script, fifoPath) });
  attempt.start();
  await attempt.untilMade('ready');
  const stat = fs.lstatSync(attempt.fifoPath);
  assert.ok(stat.isFIFO());
  assert.equal((stat.mode & 0o7777).toString(8), '600');
  assert.equal(stat.uid, process.getuid());
  assert.equal(stat.nlink, 1);
  // Nothing waits in a buffer, and nothing is published while the job runs.
  await attempt.until('the line', () => attempt.logBytes().equals(Buffer.from('there\n')));
  assert.ok(!present(attempt.factPath) && !present(attempt.receiptPath));
  attempt.make('go');
  await attempt.exits(0);
  attempt.leaves({ log: 'there\n', fact: false, receipt: 0 });
});

test('without a quota the job has the log itself, and only a receipt is published', async (t) => {
  const script = 'cd /proc/self/fd; readlink 0 1 2; stat -L -c %d:%i 1 2; ' +
    'cat ../fdinfo/1 >&2; exit 3';
  const attempt = new Attempt(t, { words: sh(script), quota: false });
  const { dev, ino } = fs.statSync(attempt.logPath);
  await attempt.exits(3);
  const log = attempt.logBytes().toString();
  const links = ['/dev/null', attempt.logPath, attempt.logPath];
  const head = [...links, `${dev}:${ino}`, `${dev}:${ino}`, 'pos:'];
  assert.ok(log.startsWith(head.join('\n')), log);
  const flags = parseInt(/^flags:\s*(\d+)$/m.exec(log)[1], 8);
  const { O_WRONLY, O_APPEND } = fs.constants;
  assert.equal(flags & (3 | O_APPEND), O_WRONLY | O_APPEND);
  attempt.leaves({ log, receipt: 3 });
});

test('without a quota the output is not limited', async (t) => {
  const attempt = new Attempt(t, { words: sh('cat bytes; exit 3'), quota: false });
  const bytes = payload(3 * QUOTA);
  attempt.make('bytes', bytes);
  await attempt.exits(3);
  attempt.leaves({ log: bytes, receipt: 3 });
});

test('without an output plan the job has /dev/null three times', async (t) => {
  const script = 'links=$(cd /proc/$$/fd; readlink 0 1 2); printf %s "$links" > links; exit 3';
  const attempt = new Attempt(t, { words: sh(script), quota: false, output: 'null' });
  await attempt.exits(3);
  assert.equal(attempt.read('links'), '/dev/null\n/dev/null\n/dev/null');
  attempt.leaves({ log: '', receipt: 3 });
});

test('the job runs in weir\'s group and session, which weir leads', async (t) => {
  const attempt = new Attempt(t, { words: sh(`cat /proc/$$/stat > stat; ${WAIT_FOR_GO}`) });
  attempt.start();
  await attempt.untilMade('ready');
  const fields = (stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ').map(Number);
  const weir = fields(fs.readFileSync(`/proc/${attempt.pid}/stat`, 'utf8'));
  const job = fields(attempt.read('stat'));
  const [GROUP, SESSION] = [2, 3];
  assert.deepEqual([weir[GROUP], weir[SESSION]], [attempt.pid, attempt.pid]);
  assert.deepEqual([job[GROUP], job[SESSION]], [attempt.pid, attempt.pid]);
  attempt.make('go');
  await attempt.exits(0);
  attempt.leaves({ log: '', fact: false, receipt: 0 });
});

test('the job runs in the client\'s working directory', async (t) => {
  const attempt = new Attempt(t, { words: ['/bin/readlink', '/proc/self/cwd'] });
  await attempt.exits(0);
  attempt.leaves({ log: `${attempt.work}\n`, fact: false, receipt: 0 });
});

for (const [umask, mode] of [['000', '666'], ['027', '640'], ['077', '600'], ['777', '0']]) {
  test(`umask ${umask} is the job's, and no mode of weir's depends on it`, async (t) => {
    const words = ({ fifoPath }) => sh('umask; : > made; stat -c %a "$1"', fifoPath);
    const attempt = new Attempt(t, { words, before: `umask ${umask}` });
    await attempt.exits(0);
    const made = fs.lstatSync(path.join(attempt.work, 'made'));
    assert.equal((made.mode & 0o7777).toString(8), mode);
    attempt.leaves({ log: `0${umask}\n600\n`, fact: false, receipt: 0 });
  });
}

// What a process is given beside its words, its environment and its descriptors.
const KEPT = '^(Umask|SigBlk|SigIgn|SigCgt|Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)';
const OWN_STATUS = ['/bin/grep', '-E', KEPT, '/proc/self/status'];

// The numbers in a mask of signals, which has the first signal as its last bit.
function signalsIn(status, name) {
  const mask = BigInt(`0x${new RegExp(`^${name}:\\s*(\\w+)$`, 'm').exec(status)[1]}`);
  return Array.from({ length: 64 }, (_, index) => index + 1)
    .filter((signal) => (mask >> BigInt(signal - 1)) & 1n);
}

const [HUP, INT, QUIT, USR2, PIPE, TERM, CHLD, TSTP, XFSZ] = [1, 2, 3, 12, 13, 15, 17, 20, 25];

for (const quota of [true, false]) {
  const kind = quota ? 'a' : 'no';

  for (const [title, option, ignored, blocked] of [
    ['default dispositions and an empty mask', '', [], []],
    ['ignored signals', 'ignore', [HUP, INT, QUIT, PIPE, TERM, TSTP, XFSZ], []],
    ['an ignored CHLD', 'ignore', [CHLD], []],
    ['blocked signals', 'block', [], [HUP, USR2, TERM, CHLD]],
  ]) {
    test(`the job keeps ${title} (${kind} quota)`, async (t) => {
      const numbers = [...ignored, ...blocked].join(',');
      const prefix = option && `env --${option}-signal=${numbers}`;
      if (spawnSync('/bin/sh', ['-c', `${prefix} true`]).status !== 0) {
        assert.ok(!process.env.CI, 'the env of coreutils is needed');
        t.skip('SKIPPED: env cannot set signals here');
        return;
      }
      const attempt = new Attempt(t, { words: OWN_STATUS, quota, prefix });
      const log = await attempt.bare();
      assert.deepEqual(signalsIn(log, 'SigIgn').filter((signal) => signal < 32), ignored);
      assert.deepEqual(signalsIn(log, 'SigBlk').filter((signal) => signal < 32), blocked);
      await attempt.exits(0);
      attempt.leaves({ log, fact: quota ? false : null, receipt: 0 });
      // Not only what the job is given, but also that weir still hears of its end.
      const another = new Attempt(t, { words: sh('echo output; exit 6'), quota, prefix });
      await another.exits(6);
      another.leaves({ log: 'output\n', fact: quota ? false : null, receipt: 6 });
    });
  }

  test(`the job keeps its limits (${kind} quota)`, async (t) => {
    const before = 'ulimit -c 0; ulimit -n 100; ulimit -S -f 4096';
    const attempt = new Attempt(t, { words: ['/bin/cat', '/proc/self/limits'], quota, before });
    const log = await attempt.bare();
    await attempt.exits(0);
    attempt.leaves({ log, fact: quota ? false : null, receipt: 0 });
  });
}

// ---- The log and the quota ----------------------------------------------------------------------

for (const [title, lengthBytes, reached] of [
  ['nothing', 0, false],
  ['one byte', 1, false],
  ['one byte less than the quota', QUOTA - 1, false],
  ['exactly the quota', QUOTA, false],
  ['one byte more than the quota', QUOTA + 1, true],
  ['far more than the quota', 8 * 1024 * 1024, true],
]) {
  test(`a job that writes ${title}: the log is the head, the fact says ${reached}`, async (t) => {
    const attempt = new Attempt(t, { words: sh('cat bytes && exit 3') });
    const bytes = payload(lengthBytes);
    attempt.make('bytes', bytes);
    await attempt.exits(3);
    attempt.leaves({ log: bytes.subarray(0, QUOTA), fact: reached, receipt: 3 });
  });
}

for (const [title, remaining, written, reached] of [
  ['less', 25_536, 25_535, false],
  ['exactly that', 25_536, 25_536, false],
  ['one byte more', 25_536, 25_537, true],
  ['far more', 25_536, 3 * QUOTA, true],
  ['one byte where one remains', 1, 1, false],
  ['two bytes where one remains', 1, 2, true],
]) {
  test(`a log that holds bytes, and a job that writes ${title}`, async (t) => {
    const already = payload(QUOTA - remaining);
    const attempt = new Attempt(t, { words: sh('cat bytes && exit 3'), already });
    const bytes = payload(written);
    attempt.make('bytes', bytes);
    await attempt.exits(3);
    const log = Buffer.concat([already, bytes.subarray(0, remaining)]);
    attempt.leaves({ log, fact: reached, receipt: 3 });
  });
}

test('a larger quota holds at its exact byte as well', async (t) => {
  const maximum = 1_234_567;
  const attempt = new Attempt(t, { words: sh('cat bytes && exit 3'), maximum });
  const bytes = payload(maximum + 1);
  attempt.make('bytes', bytes);
  await attempt.exits(3);
  attempt.leaves({ log: bytes.subarray(0, maximum), fact: true, receipt: 3 });
});

test('the log is at no moment longer than the quota', async (t) => {
  const attempt = new Attempt(t, { words: sh('cat bytes bytes bytes bytes && exit 3') });
  const bytes = payload(4 * 1024 * 1024);
  attempt.make('bytes', bytes);
  attempt.start();
  let longest = 0;
  await attempt.until('the end', () => {
    longest = Math.max(longest, fs.statSync(attempt.logPath).size);
    return attempt.endedClock !== undefined;
  });
  assert.ok(longest <= QUOTA, `${longest} bytes`);
  await attempt.exits(3);
  attempt.leaves({ log: bytes.subarray(0, QUOTA), fact: true, receipt: 3 });
});

test('output and error output come in the order in which they were written', async (t) => {
  const script = 'i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i + 1)); done; exit 3';
  const attempt = new Attempt(t, { words: sh(script) });
  await attempt.exits(3);
  const lines = Array.from({ length: 500 }, (_, index) => `o${index}\ne${index}\n`);
  attempt.leaves({ log: lines.join(''), fact: false, receipt: 3 });
});

// The first write that fails is one that a limit on the size of files forbids: an ordinary user
// has no disk to fill.
test('after a failed write nothing is kept or proven, and the job notices nothing', async (t) => {
  const before = 'ulimit -f 8';
  const attempt = new Attempt(t, { words: ['/bin/cat', '/proc/self/limits'], before });
  const limits = (await attempt.bare()).toString();
  const limitBytes = Number(/^Max file size\s+(\d+)/m.exec(limits)[1]);
  assert.ok(limitBytes < QUOTA);
  const bytes = payload(1024 * 1024);
  attempt.make('bytes', bytes);
  attempt.options.words = sh('cat bytes && : > drained; exit 5');
  await attempt.exits(5);
  assert.ok(attempt.made('drained'));
  attempt.leaves({ log: bytes.subarray(0, limitBytes), receipt: 5 });
});

test('a failed write behind what a log held proves nothing either', async (t) => {
  const before = 'ulimit -f 8';
  const already = payload(16 * 1024);
  const attempt = new Attempt(t, { words: sh('echo lost; : > done; exit 5'), before, already });
  await attempt.exits(5);
  assert.ok(attempt.made('done'));
  attempt.leaves({ log: already, receipt: 5 });
});

// ---- The exit code ------------------------------------------------------------------------------

async function inBatches(items, each) {
  const queue = [...items];
  const take = async () => {
    while (queue.length > 0) {
      await each(queue.shift());
    }
  };
  await Promise.all([take(), take(), take(), take()]);
}

test('every exit code of the job is weir\'s and the receipt\'s, without a word', async (t) => {
  await inBatches(Array.from({ length: 256 }, (_, code) => code), async (code) => {
    const attempt = new Attempt(t, { words: sh('exit "$1"', String(code)) });
    await attempt.exits(code);
    attempt.leaves({ log: '', fact: false, receipt: code });
  });
});

test('exit codes without a quota', async (t) => {
  await inBatches([0, 1, 2, 125, 126, 127, 128, 137, 143, 255], async (code) => {
    const attempt = new Attempt(t, { words: sh('exit "$1"', String(code)), quota: false });
    await attempt.exits(code);
    attempt.leaves({ log: '', receipt: code });
  });
});

for (const quota of [true, false]) {
  test(`death by signal n is exit code 128+n (${quota ? 'a' : 'no'} quota)`, async (t) => {
    const signals = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31, 34, 50, 64];
    await inBatches(signals, async (signal) => {
      const words = sh('echo bye; kill -"$1" $$', String(signal));
      const attempt = new Attempt(t, { words, quota, before: 'ulimit -c 0' });
      await attempt.exits(128 + signal);
      attempt.leaves({ log: 'bye\n', fact: quota ? false : null, receipt: 128 + signal });
    });
  });
}

// A failed start is told in one line of the log; which words it has is weir's own affair.
async function failsToStart(t, code, options, change = () => {}) {
  const attempt = new Attempt(t, options);
  change(attempt);
  await attempt.exits(code);
  const { already } = attempt.options;
  const line = attempt.logBytes().subarray(already.length);
  assert.match(line.toString(), /^[^\n]+\n$/, 'one line');
  assert.ok(!line.includes(attempt.variables.QL3_RECEIPT_CALLBACK_TOKEN), line.toString());
  attempt.leaves({ log: Buffer.concat([already, line]), fact: false, receipt: code });
}

for (const [title, words] of [
  ['a path that does not exist', ['/nowhere/command']],
  ['a name that PATH does not have', ['no-such-command-anywhere', 'word']],
  ['a path with a newline', ['/nowhere/two\nlines']],
]) {
  test(`127: ${title}`, (t) => failsToStart(t, 127, { words }));
}

test('127: a shell that does not exist', (t) =>
  failsToStart(t, 127, { command: ':', set: { QL3_LAUNCH_SHELL: '/nowhere/sh' } }));

test('127: the line comes behind what the log held', (t) =>
  failsToStart(t, 127, { words: ['/nowhere/command'], already: Buffer.from('earlier\n') }));

test('126: a file that is not executable', (t) =>
  failsToStart(t, 126, { words: ['./command'] }, (attempt) => {
    attempt.tool('command', '#!/bin/sh\necho no\n', 0o600);
  }));

test('126: a directory', (t) => failsToStart(t, 126, { words: ['/'] }));

test('126: a shell that is not executable', (t) =>
  failsToStart(t, 126, { command: ':' }, (attempt) => {
    attempt.variables.QL3_LAUNCH_SHELL = attempt.tool('shell', '#!/bin/sh\necho no\n', 0o600);
  }));

for (const room of [0, 1, 5]) {
  test(`127: the line keeps within the quota when ${room} bytes of it remain`, async (t) => {
    const already = payload(QUOTA - room);
    const attempt = new Attempt(t, { words: ['/nowhere/command'], already });
    await attempt.exits(127);
    const log = attempt.logBytes();
    sameBytes(log.subarray(0, already.length), already, 'what was there');
    assert.ok(log.length <= QUOTA, `${log.length} bytes`);
    assert.ok(!present(attempt.fifoPath));
    attempt.checkReceipt(127);
  });
}

for (const [code, command] of [[127, '/nowhere/command'], [126, '/']]) {
  test(`${code} without a quota: a receipt all the same`, async (t) => {
    const attempt = new Attempt(t, { words: [command], quota: false });
    await attempt.exits(code);
    attempt.leaves({ log: attempt.logBytes(), receipt: code });
  });
}

// ---- The records --------------------------------------------------------------------------------

test('the fact and the receipt have exactly these bytes', async (t) => {
  const attempt = new Attempt(t, {
    words: sh('echo output; exit 3'),
    set: {
      QL3_RECEIPT_RUN_ID: 'run:1',
      QL3_RECEIPT_ATTEMPT_ID: 'attempt.1',
      QL3_RECEIPT_CALLBACK_SEQUENCE: '12',
      QL3_RECEIPT_CALLBACK_TOKEN: 'abcdefghijklmnopqrstuvwxyz_-0123456789',
      QL3_RECEIPT_STARTED_AT_MS: '34',
      QL3_OUTPUT_ARTIFACT_ID: 'wlog-0123456789abcdef0123456789abcd',
    },
  });
  await attempt.exits(3);
  attempt.leaves({ log: 'output\n', fact: false, receipt: 3 });
  const { observedAtMs } = attempt.checkFact(false);
  const { finishedAtMs } = attempt.checkReceipt(3);
  assert.equal(
    fs.readFileSync(attempt.factPath, 'latin1'),
    '{"schemaVersion":1,"runId":"run:1","attemptId":"attempt.1",' +
      '"logArtifactId":"wlog-0123456789abcdef0123456789abcd","maximumBytes":65536,' +
      `"quotaReached":false,"observedAtMs":${observedAtMs}}`,
  );
  assert.equal(
    fs.readFileSync(attempt.receiptPath, 'latin1'),
    '{"schemaVersion":1,"runId":"run:1","attemptId":"attempt.1","callbackSequence":12,' +
      '"token":"abcdefghijklmnopqrstuvwxyz_-0123456789","startedAtMs":34,' +
      `"finishedAtMs":${finishedAtMs},"exitCode":3}`,
  );
});

test('a start in the far future ends when it started', async (t) => {
  const startedAtMs = Date.now() + 1_000_000_000;
  const set = { QL3_RECEIPT_STARTED_AT_MS: String(startedAtMs) };
  const attempt = new Attempt(t, { words: sh('echo output'), set });
  await attempt.exits(0);
  attempt.leaves({ log: 'output\n', fact: false, receipt: 0 });
  assert.equal(attempt.checkReceipt(0).finishedAtMs, startedAtMs);
});

const EARLIER = Buffer.from('{"of":"an earlier attempt"}\n');

for (const which of ['fact', 'receipt', 'fact and receipt']) {
  for (const [title, bytes] of [['fits', payload(1000)], ['is cut', payload(QUOTA + 1)]]) {
    test(`an existing ${which} stays, and the job whose output ${title} runs`, async (t) => {
      const attempt = new Attempt(t, { words: sh('cat bytes && exit 3') });
      attempt.make('bytes', bytes);
      const left = { log: bytes.subarray(0, QUOTA), fact: bytes.length > QUOTA, receipt: 3 };
      const inodes = [];
      for (const name of which.split(' and ')) {
        const file = name === 'fact' ? attempt.factPath : attempt.receiptPath;
        fs.writeFileSync(file, EARLIER, { mode: 0o600 });
        inodes.push([file, fs.lstatSync(file).ino]);
        left[name] = EARLIER;
      }
      await attempt.exits(3);
      attempt.leaves(left);
      for (const [file, inode] of inodes) {
        assert.equal(fs.lstatSync(file).ino, inode, file);
      }
    });
  }
}

test('an existing receipt stays when there is no quota', async (t) => {
  const attempt = new Attempt(t, { words: sh('echo output; exit 3'), quota: false });
  fs.writeFileSync(attempt.receiptPath, EARLIER, { mode: 0o600 });
  await attempt.exits(3);
  attempt.leaves({ log: 'output\n', receipt: EARLIER });
});

test('symlinks_planted_as_records are neither followed nor replaced', async (t) => {
  const attempt = new Attempt(t, { words: sh('echo output; exit 3') });
  const planted = path.join(attempt.work, 'planted');
  fs.symlinkSync(planted, attempt.factPath);
  fs.symlinkSync(planted, attempt.receiptPath);
  await attempt.exits(3);
  assert.equal(fs.readlinkSync(attempt.factPath), planted);
  assert.equal(fs.readlinkSync(attempt.receiptPath), planted);
  assert.ok(!present(planted));
  sameBytes(attempt.logBytes(), Buffer.from('output\n'), 'the log');
});

for (const [title, spoil, mend] of [
  ['its directory does not exist', ({ receipts }) => fs.rmdirSync(receipts),
    ({ receipts }) => fs.mkdirSync(receipts)],
  ['its directory is not writable', ({ receipts }) => fs.chmodSync(receipts, 0o500), () => {}],
  ['its directory cannot be entered', ({ receipts }) => fs.chmodSync(receipts, 0o000),
    ({ receipts }) => fs.chmodSync(receipts, 0o700)],
]) {
  for (const quota of [true, false]) {
    const kind = quota ? 'a' : 'no';
    test(`a receipt that cannot be written: ${title} (${kind} quota)`, async (t) => {
      const attempt = new Attempt(t, { words: sh('echo output; exit 3'), quota });
      spoil(attempt);
      await attempt.exits(3);
      mend(attempt);
      attempt.leaves({ log: 'output\n', fact: quota ? false : null });
    });
  }
}

test('records that turn up while the job runs stay as well', async (t) => {
  const words = ({ factPath, receiptPath }) =>
    sh('umask 077; cp earlier "$1"; cp earlier "$2"; exit 3', factPath, receiptPath);
  const attempt = new Attempt(t, { words });
  attempt.make('earlier', EARLIER);
  await attempt.exits(3);
  attempt.leaves({ log: '', fact: EARLIER, receipt: EARLIER });
});

for (const [title, folder, there, missing] of [
  ['fact', 'outputs', 'receiptPath', 'factPath'],
  ['receipt', 'receipts', 'factPath', 'receiptPath'],
]) {
  test(`a directory that stops taking the ${title} while the job runs`, async (t) => {
    const words = (attempt) => sh('chmod 500 "$1"; echo output; exit 3', attempt[folder]);
    const attempt = new Attempt(t, { words });
    await attempt.exits(3);
    sameBytes(attempt.logBytes(), Buffer.from('output\n'), 'the log');
    assert.deepEqual([present(attempt[there]), present(attempt[missing])], [true, false]);
    if (title === 'fact') {
      attempt.checkReceipt(3);
    } else {
      attempt.checkFact(false);
    }
  });
}

test('directories in the place of the records do not change the exit code', async (t) => {
  const attempt = new Attempt(t, { words: sh('echo output; exit 3') });
  fs.mkdirSync(attempt.factPath);
  fs.mkdirSync(attempt.receiptPath);
  await attempt.exits(3);
  sameBytes(attempt.logBytes(), Buffer.from('output\n'), 'the log');
  assert.ok(fs.lstatSync(attempt.factPath).isDirectory());
  assert.ok(fs.lstatSync(attempt.receiptPath).isDirectory());
  assert.ok(!present(attempt.fifoPath));
});

test('a reader at any moment sees whole records with one link, the fact first', async (t) => {
  const attempts = Array.from({ length: 100 }, (_, index) => {
    const attempt = new Attempt(t, { words: sh('cat bytes; exit 3') });
    attempt.make('bytes', payload(index % 2 === 0 ? 100 : QUOTA + 1));
    return attempt;
  });
  const watch = new Watch(t, attempts);
  for (const [index, attempt] of attempts.entries()) {
    await watch.lookAt(index);
    await attempt.exits(3);
    const bytes = fs.readFileSync(path.join(attempt.work, 'bytes'));
    attempt.leaves({ log: bytes.subarray(0, QUOTA), fact: index % 2 === 1, receipt: 3 });
    await watch.seenThrough(index);
  }
  const report = await watch.stop();
  for (const [index, { fact, receipt, early }] of report.entries()) {
    const { factPath, receiptPath } = attempts[index];
    for (const [file, seen] of [[factPath, fact], [receiptPath, receipt]]) {
      const { ino } = fs.lstatSync(file);
      const whole = `inode ${ino} mode 600 links 1: ${fs.readFileSync(file, 'latin1')}`;
      assert.deepEqual([...seen], [whole], `what was seen of ${file}`);
    }
    assert.equal(early, 0, `times that the receipt ${receiptPath} was there before its fact`);
  }
});

// ---- The end of the output ----------------------------------------------------------------------

// Where a process waits, all its threads sleep; one that still has to take the time does not.
function sleeps(pid) {
  return fs.readdirSync(`/proc/${pid}/task`).every((task) => {
    const stat = fs.readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('S');
  });
}

for (const [title, late, log, reached] of [
  ['a line', 'echo late', Buffer.from('early\nlate\n'), false],
  ['nothing', ':', Buffer.from('early\n'), false],
  ['more than the quota', 'cat bytes',
    Buffer.concat([Buffer.from('early\n'), payload(QUOTA)]).subarray(0, QUOTA), true],
]) {
  test(`weir waits for a process that writes ${title} after the job's end`, async (t) => {
    const script = `(until [ -e go ]; do sleep 0.01; done; ${late}) & echo $$ > pid; echo early; ` +
      ': > ready; exit 3';
    const attempt = new Attempt(t, { words: sh(script) });
    attempt.make('bytes', payload(QUOTA));
    attempt.start();
    await attempt.untilMade('ready');
    const job = Number(attempt.read('pid'));
    await attempt.until('the job is gone, and weir waits', () =>
      !present(`/proc/${job}`) && sleeps(attempt.pid));
    assert.ok(present(attempt.fifoPath));
    assert.ok(!present(attempt.factPath) && !present(attempt.receiptPath));
    assert.equal(attempt.child.exitCode, null);
    const goClock = Date.now();
    attempt.make('go');
    await attempt.exits(3);
    attempt.leaves({ log, fact: reached, receipt: 3 });
    assert.ok(attempt.checkReceipt(3).finishedAtMs <= goClock, 'finished when the job ended');
  });
}

test('a job that closes its output early keeps its exit code', async (t) => {
  const script = `echo early; exec > /dev/null 2>&1; ${WAIT_FOR_GO}; exit 3`;
  const attempt = new Attempt(t, { words: sh(script) });
  attempt.start();
  await attempt.untilMade('ready');
  await attempt.until('weir waits', () => sleeps(attempt.pid));
  assert.ok(!present(attempt.factPath) && !present(attempt.receiptPath));
  attempt.make('go');
  await attempt.exits(3);
  attempt.leaves({ log: 'early\n', fact: false, receipt: 3 });
});

// ---- Stopping and trying again ------------------------------------------------------------------

for (const quota of [true, false]) {
  const kind = quota ? 'a' : 'no';
  const fact = quota ? false : null;

  test(`TERM to the whole group ends the job, and weir publishes (${kind} quota)`, async (t) => {
    const attempt = new Attempt(t, { words: sh('echo early; : > ready; exec sleep 600'), quota });
    attempt.start();
    await attempt.untilMade('ready');
    attempt.signal('SIGTERM');
    await attempt.exits(143);
    attempt.leaves({ log: 'early\n', fact, receipt: 143 });
  });

  test(`a job that catches TERM ends as it likes (${kind} quota)`, async (t) => {
    // Short sleeps: a shell may run its trap only when the command before it has ended.
    const words = sh(`trap "echo caught; exit 7" TERM; ${WAIT_FOR_GO}`);
    const attempt = new Attempt(t, { words, quota });
    attempt.start();
    await attempt.untilMade('ready');
    attempt.signal('SIGTERM');
    await attempt.exits(7);
    // The shell may tell in its own words that TERM has ended its sleep as well.
    const log = attempt.logBytes();
    assert.match(log.toString(), /caught\n$/);
    attempt.leaves({ log, fact, receipt: 7 });
  });

  test(`weir outlives a TERM that the job outlives (${kind} quota)`, async (t) => {
    const words = sh(`trap ": > caught" TERM; ${WAIT_FOR_GO}; echo late; exit 9`);
    const attempt = new Attempt(t, { words, quota });
    attempt.start();
    await attempt.untilMade('ready');
    attempt.signal('SIGTERM');
    await attempt.untilMade('caught');
    attempt.make('go');
    await attempt.exits(9);
    assert.match(attempt.logBytes().toString(), /late\n$/);
    attempt.leaves({ log: attempt.logBytes(), fact, receipt: 9 });
  });

  test(`KILL leaves no record, and the attempt can be tried again (${kind} quota)`, async (t) => {
    const attempt = new Attempt(t, { words: sh('trap "" TERM; : > ready; sleep 600'), quota });
    attempt.start();
    await attempt.untilMade('ready');
    attempt.signal('SIGTERM');
    attempt.signal('SIGKILL');
    assert.deepEqual(await attempt.ended(), { code: null, signal: 'SIGKILL' });
    assert.ok(!present(attempt.factPath) && !present(attempt.receiptPath));
    attempt.options.words = sh('echo again; exit 4');
    attempt.start();
    await attempt.exits(4);
    attempt.leaves({ log: 'again\n', fact, receipt: 4 });
  });
}

test('TERM in the middle of the start ends the job, or comes before there is one', async (t) => {
  for (let step = 0; step < 60; step += 1) {
    const attempt = new Attempt(t, { words: ['/bin/sleep', '600'] });
    attempt.start();
    // A sweep over the start, in which every moment must do: half of it from the shell's own
    // start on, the other half from the FIFO on.
    if (step % 2 === 1) {
      await attempt.until('the FIFO', () => present(attempt.fifoPath));
    }
    const moment = performance.now() + step * 0.05;
    while (performance.now() < moment);
    attempt.signal('SIGTERM');
    const { code, signal } = await attempt.ended();
    if (signal === 'SIGTERM') {
      attempt.leaves({ log: '' });
    } else {
      assert.deepEqual({ code, signal }, { code: 143, signal: null });
      attempt.leaves({ log: '', fact: false, receipt: 143 });
    }
  }
});

test('a killed attempt that has written is continued with what remains', async (t) => {
  // A client that still has the log open must not be in the way of its own next try.
  const words = sh('echo first; : > ready; exec sleep 600');
  const attempt = new Attempt(t, { words, keepsLogOpen: true });
  attempt.start();
  await attempt.untilMade('ready');
  await attempt.until('the first line', () => attempt.logBytes().equals(Buffer.from('first\n')));
  attempt.signal('SIGKILL');
  assert.deepEqual(await attempt.ended(), { code: null, signal: 'SIGKILL' });
  assert.ok(!present(attempt.factPath) && !present(attempt.receiptPath));
  const bytes = payload(QUOTA - 6);
  attempt.make('bytes', bytes);
  attempt.options.words = sh('cat bytes; exit 4');
  attempt.variables.QL3_OUTPUT_QUOTA_REMAINING_BYTES = String(QUOTA - 6);
  attempt.start();
  await attempt.exits(4);
  attempt.leaves({ log: Buffer.concat([Buffer.from('first\n'), bytes]), fact: false, receipt: 4 });
});

for (const [title, lengthBytes] of [
  ['empty ones', 0],
  ['half a record', 100],
  ['as long as a record can be', 1024],
]) {
  for (const quota of [true, false]) {
    const kind = quota ? 'a' : 'no';
    test(`temporaries of a killed attempt go: ${title} (${kind} quota)`, async (t) => {
      const attempt = new Attempt(t, { words: sh('echo output; exit 3'), quota });
      leaveTemporaries(attempt, lengthBytes, 0o600);
      await attempt.exits(3);
      attempt.leaves({ log: 'output\n', fact: quota ? false : null, receipt: 3 });
    });
  }
}

for (const [title, lengthBytes, mode] of [
  ['are longer than any record', 5000, 0o600],
  ['cannot be written', 100, 0o400],
  ['cannot be opened', 100, 0o000],
]) {
  test(`temporaries that ${title} do not block`, async (t) => {
    const attempt = new Attempt(t, { words: sh('echo output; exit 3') });
    leaveTemporaries(attempt, lengthBytes, mode);
    await attempt.exits(3);
    sameBytes(attempt.logBytes(), Buffer.from('output\n'), 'the log');
    attempt.checkFact(false);
    attempt.checkReceipt(3);
  });
}

function leaveTemporaries(attempt, lengthBytes, mode) {
  const { quota } = attempt.options;
  if (quota) {
    execFileSync('mkfifo', ['-m', '600', attempt.fifoPath]);
  }
  for (const file of [attempt.receiptTemporary, ...(quota ? [attempt.factTemporary] : [])]) {
    fs.writeFileSync(file, payload(lengthBytes), { mode: 0o600 });
    fs.chmodSync(file, mode);
  }
}

test('a record that was killed between its two names stays as it is', async (t) => {
  const attempt = new Attempt(t, { words: sh('echo output; exit 3') });
  fs.writeFileSync(attempt.receiptTemporary, EARLIER, { mode: 0o600 });
  fs.linkSync(attempt.receiptTemporary, attempt.receiptPath);
  await attempt.exits(3);
  sameBytes(fs.readFileSync(attempt.receiptPath), EARLIER, 'the receipt of before');
  sameBytes(attempt.logBytes(), Buffer.from('output\n'), 'the log');
});

// ---- What the job cannot reach ------------------------------------------------------------------

// Tries, as the job, to open what is weir's under /proc; says what came of each.
const INTRUDER = `
  const fs = require('node:fs');
  const group = fs.readFileSync('/proc/self/stat', 'utf8').replace(/^.*\\) /s, '').split(' ')[2];
  const { O_RDONLY, O_WRONLY, O_RDWR, O_APPEND } = fs.constants;
  const outcome = (call) => {
    try {
      call();
      return 'reached';
    } catch ({ code }) {
      return code;
    }
  };
  const outcomes = {};
  for (const name of ['environ', 'mem', 'maps', 'auxv', \`task/\${group}/environ\`]) {
    const file = \`/proc/\${group}/\${name}\`;
    outcomes[name] = outcome(() => fs.readSync(fs.openSync(file), Buffer.alloc(1)));
  }
  for (const folder of ['fd', 'map_files', \`task/\${group}/fd\`]) {
    outcomes[folder] = outcome(() => fs.readdirSync(\`/proc/\${group}/\${folder}\`));
  }
  for (let number = 0; number < 64; number += 1) {
    const file = \`/proc/\${group}/fd/\${number}\`;
    for (const flags of [O_RDONLY, O_WRONLY, O_WRONLY | O_APPEND, O_RDWR]) {
      outcomes[\`fd/\${number} \${flags}\`] = outcome(() => fs.openSync(file, flags));
    }
  }
  for (const name of ['environ', 'cmdline']) {
    outcomes[\`own \${name}\`] = fs.readFileSync(\`/proc/self/\${name}\`, 'latin1');
  }
  outcomes.group = Number(group);
  fs.writeFileSync('outcomes', JSON.stringify(outcomes));
`;

for (const quota of [true, false]) {
  test(`what is weir's is out of the job's reach (${quota ? 'a' : 'no'} quota)`, async (t) => {
    const attempt = new Attempt(t, { words: [process.execPath, '-e', INTRUDER], quota });
    await attempt.exits(0);
    const token = attempt.variables.QL3_RECEIPT_CALLBACK_TOKEN;
    const text = attempt.read('outcomes');
    assert.ok(!text.includes(token));
    const { 'own environ': environ, 'own cmdline': cmdline, group, ...outcomes } = JSON.parse(text);
    assert.ok(environ.includes('PATH=') && cmdline.includes('-e'), 'the job can read its own');
    assert.equal(group, attempt.pid);
    const denied = ['EACCES', 'EPERM'];
    const others = Object.entries(outcomes).filter(([, outcome]) => !denied.includes(outcome));
    assert.deepEqual(others, []);
    assert.ok(Object.keys(outcomes).length > 256);
    attempt.leaves({ log: '', fact: quota ? false : null, receipt: 0 });
  });
}

test('the token is in the receipt and in no other file', async (t) => {
  const attempt = new Attempt(t, { words: sh('env; set; exit 3') });
  await attempt.exits(3);
  const token = attempt.variables.QL3_RECEIPT_CALLBACK_TOKEN;
  const holders = snapshot(attempt.base).filter(({ content }) => content?.includes(token));
  assert.deepEqual(holders.map(({ file }) => file), [attempt.receiptPath]);
});
