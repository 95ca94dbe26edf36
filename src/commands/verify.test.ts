import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type TemporaryFolder, temporaryFolder } from '../../test/support/temporary-folder.ts';
import { hashIngressKey } from '../core/ids/ingress-key.ts';
import { verify } from './verify.ts';

let folder: TemporaryFolder;
beforeAll(async () => {
  folder = await temporaryFolder('verify');
});
afterAll(() => folder.remove());

async function run(key: string, url = 'http://127.0.0.1:1'): Promise<{ readonly output: string }> {
  const file = join(folder.path, 'key');
  await writeFile(file, key);
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await verify([`--url=${url}`, '--workspace=acme', '--stream=orders', `--key-file=${file}`, '--timeout=0.1'], {});
    return { output: write.mock.calls.join('') };
  } finally {
    write.mockRestore();
  }
}

test.each(['first-secret\nsecond-secret\n', '', '\n', 'secret\u0000'])(
  'a file with %j instead of a key is refused without printing its content',
  async text => {
    const error = await run(text).then(
      ({ output }) => new Error(output),
      (reason: unknown) => reason as Error,
    );
    expect(error.message).toMatch(/^--key-file: \S+ must contain a single ingress key$/);
  },
);

test('a key is sent as the same bytes that are in the file', async () => {
  const hashes: string[] = [];
  const server = createServer((request, response) => {
    hashes.push(hashIngressKey(`${request.headers.authorization}`.slice('Bearer '.length)));
    response.writeHead(401).end('no');
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const key = 'a long key: clé à voilà';
  const { output } = await run(`${key}\n`, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(output).toContain('Ingress responds with 401: no');
  expect(new Set(hashes)).toEqual(new Set([hashIngressKey(Buffer.from(key).toString('latin1'))]));
});

test.each(['127.0.0.1:8080', 'localhost:8080', 'ftp://localhost', 'x'])('the URL %s is refused', async url => {
  await expect(run('a key', url)).rejects.toThrow('--url must be the URL of ingress, e.g. https://events.example.com');
});
