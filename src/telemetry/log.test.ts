import { expect, test } from 'vitest';
import { createLogger } from './log.ts';

const SECRET = ['authorization', 'token', 'secret', 'key', 'password', 'invitedEmail'];

test('secrets and addresses that were logged by mistake are redacted', () => {
  const lines: Record<string, Record<string, string>>[] = [];
  const log = createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) });
  const response = { response: 'hidden', headers: 'hidden', body: 'hidden' };
  const call = Object.fromEntries(SECRET.map(name => [name, 'hidden']));
  log.info({ call: { ...call, id: 'shown' }, err: Object.assign(new Error('failed'), response) }, 'a mistake');
  expect(lines[0]?.['call']).toEqual({ ...Object.fromEntries(SECRET.map(name => [name, '[redacted]'])), id: 'shown' });
  expect(lines[0]?.['err']).toMatchObject({ message: 'failed' });
  expect(JSON.stringify(lines)).not.toContain('hidden');
});
