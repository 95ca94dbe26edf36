import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { judgeSignatures } from './signatures.ts';

const SKIPPED = 'The signatures of packages were not checked';
const invalid = [
  { name: 'a', version: '1.0.0', code: 'EINTEGRITYSIGNATURE', registry: 'https://packages.example.com/' },
];
const missing = [{ name: '@b/c', version: '2.0.0', registry: 'https://packages.example.com/' }];
const judge = (report: object, failure?: string) => judgeSignatures(JSON.stringify(report), failure);

test('passes if npm does not report anything', () => {
  expect(judge({ invalid: [], missing: [] })).toEqual({
    lines: ['the packages of package-lock.json have valid signatures'],
    passed: true,
  });
});

test('fails if a signature is invalid, regardless of other results, and lists packages without a signature', () => {
  const failed = 'FAILED: a@1.0.0 has an invalid signature (EINTEGRITYSIGNATURE)';
  const unsigned = 'NOT CHECKED: @b/c@2.0.0 has no signature';
  expect(judge({ invalid, missing }, 'Command failed')).toEqual({ lines: [failed, unsigned], passed: false });
  expect(judge({ invalid, missing: [] })).toEqual({ lines: [failed], passed: false });
  expect(judge({ invalid: [], missing }, 'Command failed')).toEqual({ lines: [unsigned], passed: true });
});

test.each(['EMISSINGSIGNATUREKEY', 'EEXPIREDSIGNATUREKEY', 'EATTESTATIONSUBJECT'])(
  'fails if npm exits with %s, for which it does not list the package',
  code => {
    expect(judge({ error: { code, summary: 'a@1.0.0 has a signature\nmore', detail: '' } }, 'Command failed')).toEqual({
      lines: [`FAILED: a@1.0.0 has a signature (${code})`],
      passed: false,
    });
    expect(judge({ error: { code, summary: '' } }, 'Command failed').passed).toBe(false);
  },
);

test.each([
  [
    'an error of npm',
    '{"error": {"code": "ENOTFOUND", "summary": "request failed\\nmore"}}',
    'Command failed',
    'request failed',
  ],
  ['an error without words', '{"error": {"code": "ENOTFOUND", "summary": ""}}', 'Command failed', 'ENOTFOUND'],
  ['half a report', '{"invalid": [', 'it took longer than 60 s', 'it took longer than 60 s'],
  ['no report', '', undefined, 'there is no report'],
  ['a failure without a cause', '{"invalid": [], "missing": []}', 'Command failed', 'Command failed'],
])('%s is skipped', (_what, printed, failure, reason) => {
  expect(judgeSignatures(printed, failure)).toEqual({ lines: [`SKIPPED: ${reason}. ${SKIPPED}`], passed: true });
});

test('a registry that does not respond in time is skipped', async () => {
  const script = join(import.meta.dirname, 'audit-signatures.ts');
  const env = { ...process.env, AUDIT_MS: '1' };
  const ended = await new Promise(resolve =>
    execFile(process.execPath, [script], { env }, (error, stdout) => resolve([error, stdout])),
  );
  expect(ended).toEqual([null, `npm audit signatures: SKIPPED: it took longer than 0.001 s. ${SKIPPED}\n`]);
});
