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

test('a timeout is logged without the constants of its class', () => {
  const lines: Record<string, object>[] = [];
  const log = createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) });
  log.info({ err: new DOMException('The operation was aborted due to timeout', 'TimeoutError') }, 'late');
  const { err } = lines[0] as { err: Record<string, unknown> };
  expect(err).toMatchObject({ message: 'The operation was aborted due to timeout', name: 'TimeoutError' });
  expect(Object.keys(err).filter(name => name === name.toUpperCase())).toEqual([]);
});
