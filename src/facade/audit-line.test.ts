import { pino } from 'pino';
import { expect, test } from 'vitest';
import { traceIdOf, writeAuditLine } from './audit-line.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

test.each([
  [`00-${TRACE}-00f067aa0ba902b7-01`, TRACE],
  [undefined, 'request-1'],
  ['', 'request-1'],
  [`00-${TRACE}`, 'request-1'],
  [`00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`, 'request-1'],
])('the trace of %s is %s', (header, trace) => {
  expect(traceIdOf(header, 'request-1')).toBe(trace);
});

test('a line names the caller, the operation and the object, and no address', () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { base: null },
    { write: (text: string) => lines.push(JSON.parse(text) as Record<string, unknown>) },
  );
  writeAuditLine(log, {
    operation: 'inviteIntegration',
    identity: {
      issuer: 'https://login.example',
      subject: 'ada@example.com',
      groups: ['staff'],
      client: 'bot@example.com',
      scopes: new Set(),
    },
    params: { tenant: 'ten_1' },
    status: 201,
    about: { kind: 'Integration', namespace: 'shop', name: 'int-1' },
    traceId: TRACE,
    durationMs: 12.6,
  });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({
    audit: true,
    operation: 'inviteIntegration',
    issuer: 'https://login.example',
    subject: expect.stringMatching(/^sha256:[0-9a-f]{16}$/),
    client: expect.stringMatching(/^sha256:[0-9a-f]{16}$/),
    about: { kind: 'Integration', namespace: 'shop', name: 'int-1' },
    status: 201,
    traceId: TRACE,
    durationMs: 13,
  });
  expect(JSON.stringify(lines)).not.toContain('ada');
});
