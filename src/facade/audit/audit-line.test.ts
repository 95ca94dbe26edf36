import { expect, test } from 'vitest';
import { AUDIT_KEY, collectAudit } from '../../../test/support/facade/collect-audit.ts';
import { publicId } from '../../core/ids/ids.ts';
import { publicEventId } from '../../core/ids/public-event-id.ts';
import { readIdentity } from '../auth/identity.ts';
import { type CallFacts, callLine } from './audit-line.ts';
import { createRedact } from './redaction.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const redact = createRedact(AUDIT_KEY);
const facts: CallFacts = {
  operation: 'inviteIntegration',
  identity: readIdentity({ iss: 'https://login.example', sub: 'ada@example.com', groups: ['staff'] }),
  access: { role: 'Admin', of: 'account', by: 'group' },
  params: { tenant: 'ten_1' },
  about: { kind: 'Integration', namespace: 'shop', name: 'int-1' },
  changes: [
    {
      kind: 'Integration',
      before: undefined,
      after: { metadata: { namespace: 'shop', name: 'int-1' }, spec: { invitedEmail: 'grace@example.com' } },
    },
  ],
  status: 201,
  requestId: 'request-1',
  traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
  durationMs: 12.6,
};
const shown = (more: Partial<CallFacts>) => callLine({ ...facts, ...more }, redact) as Record<string, unknown>;

test('a line contains the caller, the access, the changes, and the outcome', () => {
  expect(callLine(facts, redact)).toEqual({
    msg: 'call',
    issuer: 'https://login.example',
    subject: redact('ada@example.com'),
    access: { role: 'Admin', of: 'account', by: 'group' },
    operation: 'inviteIntegration',
    params: { tenant: 'ten_1' },
    about: {
      kind: 'Integration',
      namespace: 'shop',
      name: 'int-1',
      publicId: publicId('Integration', 'shop', 'int-1'),
    },
    changes: [
      {
        kind: 'Integration',
        namespace: 'shop',
        name: 'int-1',
        before: null,
        after: { invitedEmail: redact('grace@example.com') },
      },
    ],
    status: 201,
    requestId: 'request-1',
    traceId: TRACE,
    durationMs: 13,
  });
});

test.each([undefined, '', `00-${TRACE}`, `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`])(
  'the request id does not depend on the caller, and %s is no trace',
  traceparent => {
    const line = shown({ traceparent });
    expect(line).not.toHaveProperty('traceId');
    expect(line['requestId']).toBe('request-1');
  },
);

test('a call to the data plane shows its range and subscription', () => {
  const subscription = 'sub_0123456789abcdefghjk';
  const event = publicEventId('0'.repeat(15), subscription);
  const about = { kind: 'Subscription', publicId: subscription };
  const call = { about: undefined, changes: [], params: {} };
  const range = { subscription, since: 1, until: 2, states: ['dead'] };
  expect(shown({ ...call, body: range })).toMatchObject({ request: range, about });
  expect(shown({ ...call, body: { upTo: event } })).toMatchObject({ request: { upTo: event }, about });
  expect(shown({ ...call, params: { event } })).toMatchObject({ about });
  expect(shown({ ...call, params: { subscription } })).toMatchObject({ about });
  expect(shown(call)).not.toHaveProperty('about');
});

test('every line is different from log lines, and has a time', () => {
  const { trail, lines } = collectAudit();
  trail.call(facts);
  const refused = { identity: undefined, operation: undefined, params: {}, requestId: 'r', traceparent: undefined };
  trail.refused({ ...refused, status: 401, reason: 'missing', network: '192.0.2.0/24' });
  expect(lines).toMatchObject([
    { audit: true, role: 'facade', level: 'info', msg: 'call', requestId: 'request-1' },
    { audit: true, msg: 'refused call', status: 401, reason: 'missing', network: '192.0.2.0/24', requestId: 'r' },
  ]);
  for (const line of lines) expect(Date.parse(line['time'] as string)).not.toBeNaN();
});
