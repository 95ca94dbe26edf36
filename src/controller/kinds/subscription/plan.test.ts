import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import { planSubscription, type SubscriptionFacts } from './plan.ts';

const WORKS: SubscriptionFacts['endpoint'] = {
  health: undefined,
  recorded: undefined,
  recordedFailing: undefined,
  enabledMs: undefined,
  exists: true,
  nowMs: Date.parse('2026-01-02T03:04:05Z'),
};

const ADMITTED: SubscriptionFacts = {
  namespace: 'globex',
  name: 'acme-orders',
  producer: 'acme',
  stream: 'orders',
  verdict: { ready: 'Admitted', live: 'Live' },
  admittedAt: undefined,
  signing: undefined,
  secretVersion: 1,
  firstKey: 'first-key-',
  oldestKey: 'oldest-key',
  backlogAtRisk: undefined,
  recordedBacklog: undefined,
  endpoint: WORKS,
  now: '2026-01-02T03:04:05Z',
};

describe('subscription', () => {
  const facts = ADMITTED;
  test.each<[SubscriptionFacts['verdict'], string[]]>([
    [{ ready: 'Admitted', live: 'Live' }, ['Ready=True/Admitted', 'Live=True/Live']],
    [{ ready: 'Admitted', live: 'Blocked' }, ['Ready=True/Admitted', 'Live=False/Blocked']],
    [{ ready: 'Admitted', live: 'Suspended' }, ['Ready=True/Admitted', 'Live=False/Suspended']],
    [{ ready: 'Admitted', live: 'InsufficientTokens' }, ['Ready=True/Admitted', 'Live=False/InsufficientTokens']],
    [
      { ready: 'Admitted', live: 'EndpointRefused', detail: 'address_refused' },
      ['Ready=True/Admitted', 'Live=False/EndpointRefused'],
    ],
    [
      { ready: 'Admitted', live: 'WaitingForSecret', detail: 'secret_missing' },
      ['Ready=True/Admitted', 'Live=False/WaitingForSecret'],
    ],
    [
      { ready: 'Admitted', live: 'HeaderNotReadable', detail: 'seal_not_opened' },
      ['Ready=True/Admitted', 'Live=False/HeaderNotReadable'],
    ],
    [
      { ready: 'Admitted', live: 'SpecRefused', detail: 'maxPerSecond: 100000 is out of range' },
      ['Ready=True/Admitted', 'Live=False/SpecRefused'],
    ],
    [
      { ready: 'WaitingForGrant', live: 'NotAdmitted' },
      ['Ready=Unknown/WaitingForGrant', 'Reconciling=True/Progressing', 'Live=False/NotAdmitted'],
    ],
    [
      { ready: 'Duplicate', live: 'NotAdmitted' },
      ['Ready=False/Duplicate', 'Stalled=True/Duplicate', 'Live=False/NotAdmitted'],
    ],
    [
      { ready: 'StreamDeprecated', live: 'NotAdmitted' },
      ['Ready=False/StreamDeprecated', 'Stalled=True/StreamDeprecated', 'Live=False/NotAdmitted'],
    ],
  ])('%j', (verdict, expected) => {
    expect(listConditions(planSubscription({ ...facts, verdict }))).toEqual(expected);
  });

  test.each([
    ['plain_http_refused', 'Use https'],
    ['address_refused', 'SLUICE_ALLOWED_NETWORKS'],
    ['address_refused', 'SLUICE_REFUSED_NETWORKS'],
    ['port_refused', 'SLUICE_ALLOWED_PORTS'],
  ] as const)('the message of a refused endpoint says what to change: %s', (detail, words) => {
    const verdict = { ready: 'Admitted', live: 'EndpointRefused', detail } as const;
    expect(planSubscription({ ...facts, verdict }).conditions.at(-1)?.message).toContain(words);
  });

  test('a refused spec has a message that contains the value, and an Event', () => {
    const detail = 'maxPerSecond: 100000 is out of range';
    const { conditions, events } = planSubscription({
      ...facts,
      verdict: { ready: 'Admitted', live: 'SpecRefused', detail },
    });
    expect(conditions.at(-1)?.message).toMatch(/^routing is paused .+ Change the value: maxPerSecond: 100000 is/);
    expect(events).toEqual([{ type: 'Warning', reason: 'SpecRefused', message: conditions.at(-1)?.message }]);
  });

  test('the message of a header without a value contains its name and where the value is expected', () => {
    const about = 'header Authorization, Secret orders-endpoint, key token';
    const verdict = { ready: 'Admitted', live: 'WaitingForSecret', detail: 'key_missing', about } as const;
    expect(planSubscription({ ...facts, verdict }).conditions.at(-1)?.message).toBe(
      'events are kept in the inbox because a header of the endpoint does not have a value yet: the Secret does not contain this key (header Authorization, Secret orders-endpoint, key token)',
    );
  });

  test('the message of a header whose Secret is missing or cannot be used says what to create', () => {
    const verdict = { ready: 'Admitted', live: 'WaitingForSecret', detail: 'secret_missing', about: 'a' } as const;
    const { message } = planSubscription({ ...facts, verdict }).conditions.at(-1) ?? {};
    expect(message).toMatch(/its type is for credentials of the cluster or of Sluice\. Create a Secret of type Opaque/);
  });

  test('the message of a signing secret without a root key contains the key and what to do', () => {
    const about = 'root key AAAAAAAAAA';
    const verdict = { ready: 'Admitted', live: 'SigningKeyMissing', detail: 'root_key_missing', about } as const;
    expect(planSubscription({ ...facts, verdict }).conditions.at(-1)).toMatchObject({
      status: 'False',
      reason: 'SigningKeyMissing',
      message:
        'events are kept in the inbox because the signing secret cannot be derived: the root key for the current or the previous secret is missing. Ask the operator to restore the file (SLUICE_ROOT_KEY_FILE), or rotate the signing secret until both secrets are derived from an existing root key (root key AAAAAAAAAA)',
    });
  });

  test('the message of a sealed value that cannot be decrypted contains the header and how to set it again', () => {
    const about = 'header Authorization';
    const verdict = { ready: 'Admitted', live: 'HeaderNotReadable', detail: 'seal_not_opened', about } as const;
    expect(planSubscription({ ...facts, verdict }).conditions.at(-1)?.message).toBe(
      'events are kept in the inbox because a header of the endpoint cannot be decrypted: its valueSealed was encrypted for another Subscription, header, or host, or with a root key that is missing on the controller. Set the value again using the REST API or replace valueSealed with value or valueFrom (header Authorization)',
    );
  });

  test.each([
    ['globex', 'Ask the producer to set spec.workspace of its Integration to globex'],
    ['acme', 'Check the namespace because a Subscription must be in the namespace of the receiving workspace'],
  ])('the message names the missing grant in the namespace %s', (namespace, words) => {
    const verdict = { ready: 'WaitingForGrant', live: 'NotAdmitted' } as const;
    const [ready] = planSubscription({ ...facts, namespace, verdict }).conditions;
    expect(ready?.message).toMatch(new RegExp(`${words.replaceAll('?', String.raw`\?`)}.*$`));
    expect(ready?.message.includes('Check the namespace')).toBe(namespace === 'acme');
    expect(ready?.message).toContain('Check spec.producer and spec.integration. Ask the producer');
  });

  test('the message of a missing grant in a namespace that cannot be a workspace says to check the namespace', () => {
    const verdict = { ready: 'WaitingForGrant', live: 'NotAdmitted' } as const;
    const [ready] = planSubscription({ ...facts, namespace: 'default', verdict }).conditions;
    expect(ready?.message).toMatch(/namespace default cannot be a workspace\. If -n <workspace> is missing, add it$/);
    expect(ready?.message).not.toContain('spec.workspace');
  });

  test('the message of a missing stream also covers a stream that is being deleted', () => {
    const verdict = { ready: 'WaitingForStream', live: 'NotAdmitted' } as const;
    expect(planSubscription({ ...facts, verdict }).conditions[0]?.message).toMatch(
      /^stream orders does not exist, or is being deleted\. Check the name/,
    );
  });

  test('the younger of two subscriptions for one stream contains the name of the older one', () => {
    const verdict = { ready: 'Duplicate', live: 'NotAdmitted', about: 'acme-orders' } as const;
    expect(planSubscription({ ...facts, name: 'again', verdict }).conditions[0]?.message).toBe(
      'an older Subscription acme-orders exists for the same integration and stream. Change the older Subscription and delete this one',
    );
  });

  test('is admitted once and keeps the time', () => {
    expect(planSubscription(facts).status?.admittedAt).toBe(facts.now);
    expect(planSubscription({ ...facts, admittedAt: '2025-01-01T00:00:00Z' }).status?.admittedAt).toBe(
      '2025-01-01T00:00:00Z',
    );
    expect(
      planSubscription({ ...facts, verdict: { ready: 'WaitingForGrant', live: 'NotAdmitted' } }).status?.admittedAt,
    ).toBeUndefined();
  });

  test('a higher secret version is a rotation at the current time, and the same version is not; the salt does not change', () => {
    const signing = { salt: 'a-salt', version: 1, rotatedAt: '2025-01-01T00:00:00Z' };
    const rotated = { salt: 'a-salt', version: 2, rotatedAt: facts.now, key: facts.firstKey };
    const keyed = { ...signing, key: 'older-key-' };
    expect(planSubscription({ ...facts, signing: keyed }).status?.signing).toEqual(keyed);
    expect(planSubscription({ ...facts, signing: keyed, secretVersion: 2 }).status?.signing).toEqual({
      ...rotated,
      previousKey: 'older-key-',
    });
    expect(planSubscription({ ...facts, signing: keyed, secretVersion: undefined }).status?.signing).toEqual(keyed);
  });

  test('a secret without the id of a root key receives the id of the oldest one', () => {
    const { oldestKey, firstKey } = facts;
    const signing = { salt: 'a-salt', version: 1, rotatedAt: '2025-01-01T00:00:00Z' };
    const signingOf = (changed: Partial<SubscriptionFacts>) =>
      planSubscription({ ...facts, signing, ...changed }).status?.signing;
    expect(signingOf({})).toEqual({ ...signing, key: oldestKey });
    expect(signingOf({ secretVersion: undefined })).toEqual({ ...signing, key: oldestKey });
    const second = { ...signing, version: 2 };
    const both = { ...second, key: oldestKey, previousKey: oldestKey };
    expect(signingOf({ signing: second, secretVersion: 2 })).toEqual(both);
    expect(signingOf({ secretVersion: 2 })).toEqual({ ...both, rotatedAt: facts.now, key: firstKey });
    expect(signingOf({ signing: undefined, secretVersion: undefined })).toBeUndefined();
  });
});

describe('a disabled endpoint', () => {
  const facts: SubscriptionFacts = {
    ...ADMITTED,
    endpoint: {
      ...WORKS,
      health: { sinceMs: 1, failures: 1, disabled: { ms: Date.parse('2026-01-02T03:04:05.678Z'), by: 'gone' } },
    },
  };

  test('is written before the routes that are derived from it', () => {
    const outcome = planSubscription(facts);
    expect(listConditions(outcome)).toEqual(['Ready=True/Admitted', 'Live=False/EndpointDisabled']);
    expect(outcome.status?.endpoint).toEqual({ disabledAt: '2026-01-02T03:04:05.678Z', disabledBy: 'Gone' });
    expect(outcome.events?.map(({ reason }) => reason)).toEqual(['EndpointDisabled']);
  });

  test('is not the reason if the subscription is held for another reason', () => {
    const blocked = planSubscription({ ...facts, verdict: { ready: 'Admitted', live: 'Blocked' } });
    expect(listConditions(blocked)).toEqual(['Ready=True/Admitted', 'Live=False/Blocked']);
  });
});

test('a Secret that was refused is written again, even if the next warning is days away', () => {
  const mirrorFault = { reason: 'Refused', message: 'm' } as const;
  const health = { sinceMs: WORKS.nowMs, failures: 1 };
  const failing: SubscriptionFacts = { ...ADMITTED, endpoint: { ...WORKS, health } };
  expect(planSubscription(failing).requeueAfterMs).toBe(86_400_000);
  expect(planSubscription({ ...failing, mirrorFault }).requeueAfterMs).toBe(300_000);
  const soon = { ...WORKS, health: { ...health, sinceMs: WORKS.nowMs - 86_390_000 } };
  expect(planSubscription({ ...failing, endpoint: soon, mirrorFault }).requeueAfterMs).toBe(10_000);
});

describe('the backlog of a subscription', () => {
  const facts: SubscriptionFacts = { ...ADMITTED, verdict: { ready: 'Admitted', live: 'Blocked' } };
  const near = { status: 'True', reason: 'NearRetention', message: 'm' } as const;
  const within = { status: 'False', reason: 'WithinRetention', message: 'm' } as const;
  test.each<[Partial<SubscriptionFacts>, string | undefined, string[]]>([
    [{}, undefined, []],
    [{ backlogAtRisk: false }, undefined, []],
    [{ backlogAtRisk: true }, 'True/NearRetention', ['Warning NearRetention']],
    [{ backlogAtRisk: true, recordedBacklog: near }, 'True/NearRetention', []],
    [{ backlogAtRisk: false, recordedBacklog: near }, 'False/WithinRetention', ['Normal WithinRetention']],
    [{ backlogAtRisk: false, recordedBacklog: within }, 'False/WithinRetention', []],
    [{ backlogAtRisk: true, recordedBacklog: within }, 'True/NearRetention', ['Warning NearRetention']],
    // The backlog has not been checked yet, for example after a new leader was elected, so the previous value is kept.
    [{ recordedBacklog: near }, 'True/NearRetention', []],
    [{ recordedBacklog: within }, 'False/WithinRetention', []],
    [{ recordedBacklog: near, verdict: { ready: 'WaitingForGrant', live: 'NotAdmitted' } }, undefined, []],
  ])('%#', (change, expected, events) => {
    const outcome = planSubscription({ ...facts, ...change });
    const condition = outcome.conditions.find(({ type }) => type === 'BacklogAtRisk');
    expect(condition && `${condition.status}/${condition.reason}`).toBe(expected);
    expect(outcome.events?.map(({ type, reason }) => `${type} ${reason}`)).toEqual(events);
  });
});
