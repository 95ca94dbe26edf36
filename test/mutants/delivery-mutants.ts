import type { Mutant } from './mutants.ts';

const CORE = 'src/core/delivery/';
const DISPATCHER = 'src/dataplane/dispatcher/';
const DELIVER = `${DISPATCHER}deliver`;
const NETWORK = `${CORE}network`;

type Change = readonly [name: string, from: string, to: string];

/** The mutants of a file, and the test that detects all of them. */
function deliveryMutantsOf(file: string, test: string, changes: readonly Change[]): Mutant[] {
  return changes.map(([name, from, to]) => ({ name, file, from, to, test }));
}

/** Mutants of the code that decides when and where an event is sent, and how it is signed. */
export const DELIVERY_MUTANTS: readonly Mutant[] = [
  ...deliveryMutantsOf(`${CORE}backoff.ts`, `${CORE}backoff.test.ts`, [
    ['Retry-After reduces a delay', 'Math.max(scheduledMs, askedMs)', 'askedMs || scheduledMs'],
    [
      'all retries after the same Retry-After are sent at once',
      'Math.floor(waitMs * MAX',
      'Math.floor(scheduledMs * MAX',
    ],
  ]),
  ...deliveryMutantsOf(`${NETWORK}.ts`, `${NETWORK}.test.ts`, [
    ['an endpoint can have a password', " || parsed.password !== ''", ''],
  ]),
  ...deliveryMutantsOf(`${NETWORK}.ts`, `${DISPATCHER}refused-address.test.ts`, [
    ['endpoints can use refused networks', '[...without(special, allowed), ...never]', 'without(special, allowed)'],
  ]),
  ...deliveryMutantsOf(`${DISPATCHER}http/first-address.ts`, `${DISPATCHER}refused-address.test.ts`, [
    ['a socket connects to a refused address', '    blockList: refused,\n', ''],
  ]),
  ...deliveryMutantsOf(`${DISPATCHER}http/first-address.ts`, `${DISPATCHER}http/connector.test.ts`, [
    ['any number of addresses is tried', 'found.slice(0, MOST_ADDRESSES)', 'found'],
  ]),
  ...deliveryMutantsOf(`${DELIVER}.ts`, `${DELIVER}.test.ts`, [
    ['an event is sent although its gate has closed meanwhile', 'maySend: () => !isLate()', 'maySend: () => true'],
    ['an event is sent although its claim was taken over', ' || deps.holdsClaims?.() === false', ''],
    ['a test event disables an endpoint', "result.outcome === 'disabled' && !isTest", "result.outcome === 'disabled'"],
  ]),
  ...deliveryMutantsOf(`${DISPATCHER}subscription.ts`, 'src/dataplane/parts/opened-slots.test.ts', [
    [
      'the previous signature is never removed',
      'signing.length > 1 ? (rotatedAtMs ?? 0) + ROTATION_OVERLAP_MS : Number.POSITIVE_INFINITY',
      'Number.POSITIVE_INFINITY',
    ],
  ]),
  ...deliveryMutantsOf('src/core/routing/ingress-keys.ts', 'src/core/routing/ingress-keys.test.ts', [
    [
      'an ingress key in a Secret ends at the time set through REST',
      "for (const sha256 of secretKeys) keys[sha256] = '';",
      "for (const sha256 of secretKeys) keys[sha256] ??= '';",
    ],
  ]),
];
