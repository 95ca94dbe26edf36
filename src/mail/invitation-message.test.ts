import { expect, test } from 'vitest';
import { writeInvitation } from './invitation-message.ts';

const mail = {
  to: 'ada@partner.example',
  producer: 'acme',
  token: `sinv_${'-_9'.repeat(14)}x`,
  expiresAt: '2026-12-05T07:03:09Z',
};

test('an invitation contains the producer, the deadline, and how to accept', () => {
  const { subject, text } = writeInvitation(mail, undefined);
  expect(subject).toBe('Invitation to receive events from acme');
  expect(text).toContain('acme has invited you to receive its events.');
  expect(text).toContain('until 5 December 2026, 07:03 UTC');
  expect(text).toContain('POST /waas/invitations/accept');
  expect(text).toContain(`  {"token": "${mail.token}"}`);
  expect(text).toContain('/waas/invitations/decline');
  expect(text).not.toContain(mail.to);
});

test.each([
  ['https://partners.example/invitation', 'https://partners.example/invitation#token='],
  ['https://partners.example/?lang=en', 'https://partners.example/?lang=en#token='],
])('contains one link for the page %s, with a token that servers do not receive', (page, link) => {
  const { text } = writeInvitation(mail, page);
  expect(text.split('\n')).toContain(link + mail.token);
  expect(text).not.toContain('POST');
  expect(text).toContain('until 5 December 2026, 07:03 UTC');
});

test('every line is short enough to be kept by mail programs and relays', () => {
  const { text } = writeInvitation(mail, undefined);
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(78);
});
