import { describe, expect, test } from 'vitest';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import { issueInvitation } from '../../../core/ids/invitation.ts';
import type { Condition } from '../../engine/conditions.ts';
import { type InvitationFacts, needsInvitation, planInvitation } from './invitation.ts';

const rootKey = Buffer.alloc(32, 7);
const issued = issueInvitation(rootKey, 'uid', '2026-01-02T03:04:05Z');
const sentAt = '2026-01-02T03:04:06Z';

describe('an integration that is pending', () => {
  test.each<[string, Parameters<typeof needsInvitation>[2], boolean]>([
    ['no invitation', undefined, true],
    ['an open one', issued, false],
    ['one that was sent', { ...issued, sentAt }, false],
    ['what is left of one', { ...issued, tokenHash: undefined }, true],
    ['one without an end', { ...issued, expiresAt: undefined }, true],
    ['one whose token cannot be made, unsent', { ...issued, tokenHash: 'ab'.repeat(32) }, true],
    [
      'one whose token cannot be made, and that is in somebody’s hand',
      { ...issued, tokenHash: 'ab'.repeat(32), sentAt },
      false,
    ],
  ])('with %s', (_what, current, expected) => {
    expect(needsInvitation(keyRingOf(rootKey), 'uid', current)).toBe(expected);
  });

  test('with another uid cannot use an invitation issued for an earlier object with the same name', () => {
    expect(needsInvitation(keyRingOf(rootKey), 'uid-of-another', issued)).toBe(true);
  });
});

describe('the status of the invitation', () => {
  const facts: InvitationFacts = {
    name: 'globex',
    state: 'Pending',
    invitation: issued,
    delivery: undefined,
    recorded: undefined,
  };
  const condition = (status: 'True' | 'False', reason: string): Condition => ({
    type: 'InvitationSent',
    status,
    reason,
    message: 'm',
    observedGeneration: 1,
    lastTransitionTime: sentAt,
  });
  const failed = { failed: 'SmtpFailed', code: '451' } as const;

  test.each<[string, Partial<InvitationFacts>, string[], string[]]>([
    ['nothing, of a direct grant', { invitation: undefined, state: 'Active' }, [], []],
    ['nothing, before the first try', {}, [], []],
    ['that it was mailed', { delivery: { sentAt, as: 'Sent' } }, ['True/Sent'], ['Normal InvitationSent']],
    [
      'that its Secret was written',
      { delivery: { sentAt, as: 'SecretWritten' } },
      ['True/SecretWritten'],
      ['Normal InvitationSecretWritten'],
    ],
    ['why not', { delivery: failed }, ['False/SmtpFailed'], ['Warning InvitationSmtpFailed']],
    [
      'why not, also after a change of leaders',
      { recorded: condition('False', 'SmtpFailed') },
      ['False/SmtpFailed'],
      [],
    ],
    [
      'how it was handed over, for good',
      { invitation: { ...issued, sentAt }, recorded: condition('True', 'SecretWritten') },
      ['True/SecretWritten'],
      [],
    ],
    [
      'the same when it is accepted',
      { invitation: { ...issued, sentAt }, recorded: condition('True', 'Sent'), state: 'Active' },
      ['True/Sent'],
      [],
    ],
    ['nothing of another invitation before it', { recorded: condition('True', 'Sent') }, [], []],
    [
      'nothing of tries that are over',
      { state: 'Revoked', delivery: failed, recorded: condition('False', 'SmtpFailed') },
      [],
      [],
    ],
    // When the integration was revoked, the email was already being sent.
    [
      'that it was mailed, though it is revoked',
      { state: 'Revoked', delivery: { sentAt, as: 'Sent' } },
      ['True/Sent'],
      ['Normal InvitationSent'],
    ],
  ])('%s', (_what, change, conditions, events) => {
    const plan = planInvitation({ ...facts, ...change });
    expect(plan.conditions.map(({ status, reason }) => `${status}/${reason}`)).toEqual(conditions);
    expect(plan.events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(events);
  });

  test('contains when it was sent, and keeps the issued invitation', () => {
    expect(planInvitation({ ...facts, delivery: { sentAt, as: 'Sent' } }).invitation).toEqual({ ...issued, sentAt });
    expect(planInvitation({ ...facts, delivery: failed }).invitation).toEqual(issued);
    // A later attempt does not change this.
    const before = { ...issued, sentAt };
    const delivery = { sentAt: '2026-02-02T00:00:00Z', as: 'Sent' } as const;
    expect(planInvitation({ ...facts, invitation: before, delivery }).invitation).toEqual(before);
  });

  test('names the Secret with the token', () => {
    const { conditions, events } = planInvitation({ ...facts, delivery: { sentAt, as: 'SecretWritten' } });
    for (const each of [...conditions, ...events]) expect(each.message).toContain('Secret globex-invitation');
  });

  test('only contains the code of a failure', () => {
    const [condition] = planInvitation({ ...facts, delivery: failed }).conditions;
    expect(condition?.message).toBe('the mail server did not accept the invitation (451). The controller will retry');
  });

  test('says what to change if the API server has rejected the Secret', () => {
    const delivery = {
      failed: 'SecretFailed',
      code: 'Invalid',
      fault: 'a Secret of type Opaque already exists',
    } as const;
    const { conditions, events } = planInvitation({ ...facts, delivery });
    expect([conditions[0]?.message, events[0]?.message]).toEqual(
      Array(2).fill(
        'the controller could not write the Secret with the token (Invalid): a Secret of type Opaque already exists. The controller will retry',
      ),
    );
  });
});
