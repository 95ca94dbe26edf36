import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { createRedact, redactValue } from './redaction.ts';

const KEY = Buffer.alloc(32, 7);
const redact = createRedact(KEY);

describe('a text in an audit line', () => {
  test.each([
    ['ada', 'ada'],
    ['auth0|7', 'auth0|7'],
    ['https://hooks.example.com/T0/secret', 'https://hooks.example.com'],
    ['https://user:secret@hooks.example.com:8443/?token=secret', 'https://hooks.example.com:8443'],
    ['https://', '[url]'],
    ['a'.repeat(300), `${'a'.repeat(256)}…`],
  ])('%s becomes %s', (text, shown) => {
    expect(redact(text)).toBe(shown);
  });

  test('is a hash if it may be an address, which cannot be guessed without the root key', () => {
    const shown = redact('ada@example.com');
    expect(shown).toMatch(/^hmac:[0-9a-f]{32}$/);
    expect(redact('Ada@Example.com')).toBe(shown);
    expect(redact('eve@example.com')).not.toBe(shown);
    expect(createRedact(Buffer.alloc(32, 8))('ada@example.com')).not.toBe(shown);
  });

  test('is a hash if a URL is the name of a caller, so that callers of one domain differ', () => {
    const [one, other] = ['spiffe://cluster/ns/a/sa/one', 'spiffe://cluster/ns/a/sa/other'] as const;
    expect(redact(one, true)).toMatch(/^hmac:[0-9a-f]{32}$/);
    expect(redact(other, true)).not.toBe(redact(one, true));
    expect(redactValue({ subject: one, url: one }, redact)).toEqual({
      subject: redact(one, true),
      url: 'spiffe://cluster',
    });
  });

  test('can be found with the commands in the documentation', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../docs/audit.md'), 'utf8');
    const commands = /```bash\n([^`]*)```/.exec(page)?.[1] ?? '';
    const { path: cwd } = await temporaryFolder('root-key');
    await writeFile(join(cwd, 'root.key'), KEY);
    const shown = execFileSync('sh', ['-c', commands], { cwd, encoding: 'utf8' }).trim();
    expect(redact('ada@example.com')).toBe(`hmac:${shown}`);
  });
});

test('values keep their structure, up to a limit', () => {
  const value = {
    owners: [{ issuer: 'https://login.example.com/realms/a', subject: 'ada@example.com', role: 'Owner' }],
    endpoint: {
      url: 'https://hooks.example.com/secret',
      headers: [{ name: 'authorization', value: 'Bearer secret' }],
    },
    limit: 5,
    all: true,
    none: null,
  };
  expect(redactValue(value, redact)).toEqual({
    owners: [{ issuer: 'https://login.example.com/realms/a', subject: redact('ada@example.com'), role: 'Owner' }],
    endpoint: { url: 'https://hooks.example.com', headers: [{ name: 'authorization', value: '[hidden]' }] },
    limit: 5,
    all: true,
    none: null,
  });
  expect(
    redactValue(
      Array.from({ length: 25 }, (_, n) => n),
      redact,
    ),
  ).toHaveLength(21);
  expect(redactValue({ schema: { text: 'x'.repeat(3_000) } }, redact)).toEqual({
    schema: { text: `${'x'.repeat(256)}…` },
  });
  const large = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`f${n}`, 'x'.repeat(300)]));
  expect(redactValue({ large }, redact)).toEqual({ large: '[too large]' });
});
