import { execFile, execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { copyFile, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSigner } from '../../src/dataplane/dispatcher/signature.ts';
import { fromCache } from '../../tools/cache.ts';
import { type ChildProcess, startChild, waitUntilReady } from '../support/child-process.ts';
import { freePort } from '../support/free-port.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const EXAMPLES = join(ROOT, 'examples', 'receivers');
/** The folder in which Cargo keeps compiled packages. */
const RUST_TARGET = join(ROOT, '.cache', 'rust');
const run = promisify(execFile);

/**
 * Compiles the receiver in Rust, unless the user's cache contains it for the same sources and the same compiler.
 * Compiling its packages takes longer than all tests in this file. The repository contains no lock file, because it
 * would contain the address of the registry.
 */
async function buildRust(folder: string): Promise<void> {
  const cwd = join(EXAMPLES, 'rust');
  const digest = createHash('sha256').update((await run('cargo', ['--version', '--verbose'])).stdout);
  const sources = globSync(['Cargo.toml', 'src/**/*.rs'], { cwd }).toSorted();
  for (const name of sources) digest.update(`${name}\n`).update(readFileSync(join(cwd, name)));
  const receiver = await fromCache(`receivers/rust-${digest.digest('hex').slice(0, 16)}`, async path => {
    await run('cargo', ['build', '--quiet', '--target-dir', RUST_TARGET], { cwd });
    await copyFile(join(RUST_TARGET, 'debug', 'receiver'), path);
  });
  await symlink(receiver, join(folder, 'rust-receiver'));
}

interface Language {
  readonly name: string;
  /** The program that must be on the PATH. */
  readonly needs: string;
  readonly file: string;
  /** Compiles the receiver into `folder` if the language needs to be compiled. */
  readonly build?: (folder: string) => Promise<unknown>;
  readonly start: (folder: string) => readonly [command: string, ...args: string[]];
}

const LANGUAGES: readonly Language[] = [
  { name: 'Node', needs: 'node', file: 'node/receiver.mjs', start: () => [process.execPath, 'node/receiver.mjs'] },
  { name: 'Python', needs: 'python3', file: 'python/receiver.py', start: () => ['python3', 'python/receiver.py'] },
  {
    name: 'Go',
    needs: 'go',
    file: 'go/receiver.go',
    build: folder => run('go', ['build', '-o', join(folder, 'go-receiver'), '.'], { cwd: join(EXAMPLES, 'go') }),
    start: folder => [join(folder, 'go-receiver')],
  },
  {
    name: 'Rust',
    needs: 'cargo',
    file: 'rust/src/main.rs',
    build: buildRust,
    start: folder => [join(folder, 'rust-receiver')],
  },
  { name: 'Java', needs: 'java', file: 'java/Receiver.java', start: () => ['java', 'java/Receiver.java'] },
];

function isThere(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`]);
    return true;
  } catch {
    return false;
  }
}

const key = randomBytes(32);
const SECRET = `whsec_${key.toString('base64')}`;
/** Signs a delivery like the dispatcher. */
const sign = createSigner([key]);

interface Request {
  readonly id?: string;
  readonly body: Uint8Array;
  readonly ageSeconds?: number;
  /** Changes the signature created with the key. */
  readonly signature?: (good: string) => string | undefined;
}

async function send(port: number, { id = 'event-1', body, ageSeconds = 0, signature = good => good }: Request) {
  const timestamp = Math.floor(Date.now() / 1_000) - ageSeconds;
  const value = signature(sign(id, timestamp, body));
  const headers = {
    // Deliveries contain the group key in UTF-8. Some HTTP servers refuse headers that are not ASCII.
    'x-sluice-group-key': Buffer.from('Zürich 🚲').toString('latin1'),
    'webhook-id': id,
    'webhook-timestamp': `${timestamp}`,
    ...(value === undefined ? {} : { 'webhook-signature': value }),
  };
  return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: Buffer.from(body) })).status;
}

const JSON_BODY = Buffer.from('{"order": 1}');
const OTHER = `v1,${randomBytes(32).toString('base64')}`;

const CASES: readonly [sentence: string, request: Request, status: number][] = [
  ['takes a body of JSON', { body: JSON_BODY }, 204],
  ['takes a body that is no text', { body: Uint8Array.of(0xff, 0, 0xfe, 10, 13) }, 204],
  ['takes an empty body', { body: new Uint8Array() }, 204],
  ['takes the largest body', { body: new Uint8Array(256 * 1024) }, 204],
  ['takes the second of two signatures', { body: JSON_BODY, signature: good => `${OTHER} ${good}` }, 204],
  ['refuses another signature', { body: JSON_BODY, signature: () => OTHER }, 401],
  ['refuses a signature of another version', { body: JSON_BODY, signature: good => good.replace('v1,', 'v2,') }, 401],
  ['refuses a signature that is cut', { body: JSON_BODY, signature: good => good.slice(0, -8) }, 401],
  ['refuses a signature that is no base64', { body: JSON_BODY, signature: () => 'v1,%%%' }, 401],
  ['refuses a request without a signature', { body: JSON_BODY, signature: () => undefined }, 401],
  ['refuses an old timestamp', { body: JSON_BODY, ageSeconds: 400 }, 401],
  ['refuses a timestamp of the future', { body: JSON_BODY, ageSeconds: -400 }, 401],
];

let folder: TemporaryFolder;
beforeAll(async () => {
  folder = await temporaryFolder('receivers');
});
afterAll(() => folder.remove());

for (const language of LANGUAGES) {
  const present = isThere(language.needs);
  if (!present) console.warn(`SKIPPED: the receiver in ${language.name}; ${language.needs} is not on PATH`);
  describe.skipIf(!present)(`the receiver in ${language.name}`, () => {
    let port: number;
    let child: ChildProcess;
    beforeAll(async () => {
      await language.build?.(folder.path);
      port = await freePort();
      const [command, ...args] = language.start(folder.path);
      child = startChild({
        command,
        args,
        cwd: EXAMPLES,
        log: join(folder.path, `${language.name}.log`),
        env: { ...process.env, PORT: `${port}`, SIGNING_SECRET: SECRET },
      });
      await waitUntilReady(child, async () => (await child.logTail()).includes('listening'), {
        name: language.name,
        deadlineMs: 60_000,
      });
    }, 300_000);
    afterAll(async () => child?.stop());

    test.each(CASES)('%s', async (_, request, status) => {
      expect(await send(port, request)).toBe(status);
    });

    test('still responds after a client has closed the connection in the middle of a body', async () => {
      const socket = connect(port, '127.0.0.1');
      socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc');
      // The receiver reads the first bytes, and then the end of the connection.
      await delay(100);
      socket.destroy();
      await delay(100);
      expect(await send(port, { body: JSON_BODY })).toBe(204);
    });

    test('does not start without a signing secret', async () => {
      const [command, ...args] = language.start(folder.path);
      const { SIGNING_SECRET: _secret, ...env } = process.env;
      const start = run(command, args, {
        cwd: EXAMPLES,
        env: { ...env, PORT: `${await freePort()}` },
        timeout: 20_000,
      });
      await expect(start).rejects.toMatchObject({ killed: false, stderr: expect.stringContaining('SIGNING_SECRET') });
    });

    test('is included in docs/receivers.md unchanged', () => {
      const page = readFileSync(join(ROOT, 'docs', 'receivers.md'), 'utf8');
      expect(page).toContain(readFileSync(join(EXAMPLES, language.file), 'utf8').trim());
    });
  });
}
