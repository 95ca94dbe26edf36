import { type Mutant, mutantsWithTest } from './mutant.ts';

const CORE = 'src/core/delivery/';
const DISPATCHER = 'src/dataplane/dispatcher/';
const DELIVER = `${DISPATCHER}deliver`;
const PARTS = 'src/dataplane/parts/';
const CLAIMS = `${PARTS}claims/`;
const NETWORK = `${CORE}network`;

/** Mutants of the code that decides when and where an event is sent, and how it is signed. */
export const DELIVERY_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${CORE}backoff.ts`, `${CORE}backoff.test.ts`, [
    ['Retry-After reduces a delay', 'Math.max(scheduledMs, askedMs)', 'askedMs || scheduledMs'],
    [
      'all retries after the same Retry-After are sent at once',
      'Math.floor(waitMs * MAX',
      'Math.floor(scheduledMs * MAX',
    ],
  ]),
  ...mutantsWithTest(`${NETWORK}.ts`, `${NETWORK}.test.ts`, [
    ['an endpoint can have a password', " || parsed.password !== ''", ''],
  ]),
  ...mutantsWithTest(`${NETWORK}.ts`, `${DISPATCHER}refused-address.test.ts`, [
    ['endpoints can use refused networks', '[...without(special, allowed), ...never]', 'without(special, allowed)'],
  ]),
  ...mutantsWithTest(`${DISPATCHER}http/first-address.ts`, `${DISPATCHER}refused-address.test.ts`, [
    ['a socket connects to a refused address', '    blockList: refused,\n', ''],
  ]),
  ...mutantsWithTest(`${DISPATCHER}http/first-address.ts`, `${DISPATCHER}http/connector.test.ts`, [
    ['any number of addresses is tried', 'found.slice(0, MOST_ADDRESSES)', 'found'],
  ]),
  ...mutantsWithTest(`${DELIVER}.ts`, `${DELIVER}.test.ts`, [
    ['an event is sent although its gate has closed meanwhile', 'maySend: () => !isLate()', 'maySend: () => true'],
    ['an event is sent although its claim was taken over', ' || deps.holdsClaims?.() === false', ''],
    ['a test event disables an endpoint', "result.outcome === 'disabled' && !isTest", "result.outcome === 'disabled'"],
  ]),
  ...mutantsWithTest(`${DISPATCHER}subscription.ts`, `${CLAIMS}opened-slots.test.ts`, [
    [
      'the previous signature is never removed',
      'signing.length > 1 ? (rotatedAtMs ?? 0) + ROTATION_OVERLAP_MS : Number.POSITIVE_INFINITY',
      'Number.POSITIVE_INFINITY',
    ],
  ]),
  ...mutantsWithTest(`${CLAIMS}opened-slots.ts`, `${CLAIMS}opened-slots.test.ts`, [
    ['the previous secret is used after its overlap', ' && wallMs() < known.subscription.validUntilMs', ''],
    ['events are sent to the endpoint of another slot', ' || slotOf(owner.subscription, owner.inc) !== slot', ''],
  ]),
  ...mutantsWithTest(`${CLAIMS}slot-queues.ts`, `${CLAIMS}slot-queues.test.ts`, [
    [
      'a busy subscription uses the previous secret after its overlap',
      '      if (deps.wallMs() >= opened.subscription.validUntilMs) return askToOpen(slot);\n',
      '',
    ],
    ['a subscription has more attempts than its cap', '      if (slot.sending >= opened.row.cap) return;\n', ''],
    ['a push is read when all events of a reply have been sent', 'if (started >= upTo) {', 'if (false) {'],
    ['a subscription sends all of its events before others', 'work(slot, 1)', 'work(slot)'],
    ['a held subscription is sent events', "      if (opened.row.send !== 'open') return giveBackAll(slot);\n", ''],
  ]),
  ...mutantsWithTest(`${CLAIMS}claim-book.ts`, `${CLAIMS}claim-book.test.ts`, [
    ['a result that could not be written is lost', 'ended = [...writing, ...ended];', 'ended = [...ended];'],
  ]),
  ...mutantsWithTest(`${PARTS}push-count.ts`, `${PARTS}push-count.test.ts`, [
    ['an older response hides a lost message', 'Math.max(claimsRead, pushed)', 'pushed'],
  ]),
  ...mutantsWithTest(`${PARTS}absence.ts`, `${PARTS}absence.test.ts`, [
    ['a silent part lends its room twice', '    if (given !== undefined) return;\n', ''],
  ]),
  ...mutantsWithTest('src/record/ingress-store.ts', 'src/record/ingress-store.redis.test.ts', [
    ['an ingress key never expires', 'Number(until) - nowMs()', 'Number(until)'],
    ['ingress keys are refused after Redis has lost its data', "ready === '1' && known === 0", 'known === 0'],
  ]),
  ...mutantsWithTest('src/dataplane/ingress/key-checks.ts', 'src/dataplane/ingress/key-checks.test.ts', [
    ['a removed ingress key is accepted while it is used', 'seen.version === found.version && ', ''],
    ['a removed ingress key is accepted while Redis does not respond', ' && now < seen.requestedMs + keyTtlMs', ''],
  ]),
  ...mutantsWithTest('src/record/control-store.ts', 'src/record/control-store.redis.test.ts', [
    ['ingress does not notice that an ingress key was removed', 'isIngressKeys(key) || ', ''],
  ]),
  ...mutantsWithTest('src/core/routing/ingress-keys.ts', 'src/core/routing/ingress-keys.test.ts', [
    [
      'an ingress key in a Secret ends at the time set through REST',
      "for (const sha256 of secretKeys) keys[sha256] = '';",
      "for (const sha256 of secretKeys) keys[sha256] ??= '';",
    ],
  ]),
  ...mutantsWithTest(`${CLAIMS}slot-queues.ts`, `${CLAIMS}slot-queues.test.ts`, [
    ['a subscription that could not be opened once is never opened again', '    slot.version = undefined;\n', ''],
  ]),
  ...mutantsWithTest('src/part/claims/evict.lua', 'src/part/owner/recovery.redis.test.ts', [
    [
      'an event is sent before its retry because the dispatcher of an earlier event crashed',
      'if headDue > now then retryLane(lane, headDue)\n    elseif head then',
      'if head then',
    ],
  ]),
  ...mutantsWithTest('src/part/gate/activations.lua', 'src/part/inbox/permissions.redis.test.ts', [
    [
      'a group key is active for a slot whose name is part of another activation',
      '  while at and (at - 1) % ENTRY ~= 0 do at = string.find(list, slot, at + 1, true) end\n',
      '',
    ],
  ]),
  ...mutantsWithTest('src/dataplane/ingress/queue-cache.ts', 'src/dataplane/ingress/queue-cache.test.ts', [
    ['a removed stream is used until it has not been used for a minute', '      known.delete(key);\n', ''],
  ]),
];
