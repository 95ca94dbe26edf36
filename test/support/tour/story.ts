import type { Cluster } from '../kubernetes/cluster.ts';
import { formatMs, type Narrator } from './narrator.ts';
import type { Answer, Publication, Publish } from './publisher.ts';
import type { Received, Receiver } from './receiver.ts';
import { kubectl } from './stack.ts';

export type Scene = {
  readonly narrator: Narrator;
  readonly cluster: Cluster;
  readonly publish: Publish;
  readonly receiver: Receiver;
  /** Returns the number of events which ingress did not route because the group key is not active. */
  readonly countNotActivated: () => Promise<number>;
  /** The time to wait for an event that must not arrive after ingress has counted it as not routed, in milliseconds. */
  readonly quietMs: number;
};

const DELIVERED_WITHIN_MS = 10_000;

/** The group key of the sample Activation, and a group key without an Activation. */
const OPEN_KEY = 'customer-42';
const CLOSED_KEY = 'customer-7';

const order = (groupKey: string, number: number): Publication => ({
  type: 'order.created',
  groupKey,
  data: { order: number, customer: groupKey },
});

const describeAnswer = (answer: Answer): string =>
  `${answer.status}${answer.code === undefined ? '' : ` ${answer.code}`}${answer.id === undefined ? '' : ` id ${answer.id}`}`;

const verdict = ({ signature }: Received): string =>
  signature === 'valid' ? 'its signature is valid' : `its signature is NOT valid (${signature.refusal})`;

/** Shows an event with an open group key: it is accepted, signed, and delivered once. */
export async function tellDelivery({ narrator, publish, receiver }: Scene): Promise<void> {
  const publication = order(OPEN_KEY, 1);
  let answer = await publish(publication);
  // The Secret with the key is new, and ingress rejects the key until the controller has processed the Secret.
  for (let tries = 0; answer.status === 401 && tries < 100; tries++) {
    await new Promise(resolve => setTimeout(resolve, 50));
    answer = await publish(publication);
  }
  narrator.observe(
    `published order.created of ${OPEN_KEY}: ${describeAnswer(answer)} after ${formatMs(answer.answeredAtMs - answer.sentAtMs)}`,
    answer.status === 202,
    'should be 202',
  );
  if (answer.status !== 202) return;
  const received = await receiver.waitFor(({ id }) => id === answer.id, DELIVERED_WITHIN_MS);
  if (received === undefined) {
    narrator.observe(`it was not delivered within ${formatMs(DELIVERED_WITHIN_MS)}`, false, 'should be delivered');
    return;
  }
  narrator.observe(
    `delivered to globex ${formatMs(received.atMs - answer.answeredAtMs)} after it was accepted; ${verdict(received)}; answered ${received.status}`,
    received.signature === 'valid' &&
      received.status === 200 &&
      received.body.toString() === JSON.stringify(publication.data),
    'should be verified, answered 200, and have the bytes that were sent',
  );
  narrator.tell(`the first delivery came ${formatMs(received.atMs)} after the start`);
}

/** Shows that an event with the same id is accepted, but not stored twice. */
export async function tellDuplicate({ narrator, publish }: Scene): Promise<void> {
  const first = await publish({ ...order(OPEN_KEY, 2), id: 'order-2' });
  const again = await publish({ ...order(OPEN_KEY, 2), id: 'order-2' });
  narrator.observe(
    `published order-2 twice: ${describeAnswer(first)} (duplicate: ${first.duplicate}), then ${describeAnswer(again)} (duplicate: ${again.duplicate})`,
    again.status === 202 && first.duplicate === false && again.duplicate === true,
    'should be 202 both times, the second a duplicate',
  );
}

/** Shows an event that is stopped by the gate: accepted, not routed, and counted with a reason. */
export async function tellClosedGate(scene: Scene, groupKey: string = CLOSED_KEY): Promise<void> {
  const { narrator, publish, receiver } = scene;
  const before = await scene.countNotActivated();
  const answer = await publish(order(groupKey, 3));
  narrator.observe(
    `published order.created of ${groupKey}: ${describeAnswer(answer)}`,
    answer.status === 202,
    'should be 202',
  );
  const after = await until(scene.countNotActivated, value => value > before);
  const received = await receiver.waitFor(({ id }) => id === answer.id, scene.quietMs);
  narrator.observe(
    `sluice_ingress_not_routed_total{reason="not_activated"} went from ${before} to ${after}; globex got ${received === undefined ? 'nothing' : 'it'}`,
    after === before + 1 && received === undefined,
    'should be one more, and nothing should be delivered',
  );
}

/** Shows requests that ingress refuses: a wrong key, and an undeclared event type. */
export async function tellRefusals({ narrator, publish }: Scene): Promise<void> {
  const stranger = await publish({ ...order(OPEN_KEY, 4), key: 'not-a-key' });
  narrator.observe(`published with a wrong key: ${describeAnswer(stranger)}`, stranger.status === 401, 'should be 401');
  const unknown = await publish({ ...order(OPEN_KEY, 5), type: 'order.lost' });
  narrator.observe(
    `published a type that the stream does not declare: ${describeAnswer(unknown)}`,
    unknown.status === 422,
    'should be 422',
  );
}

/** Shows an endpoint that fails twice: three events with the same group key wait, are retried, and arrive in order. */
export async function tellRetries({ narrator, cluster, publish, receiver }: Scene): Promise<void> {
  const path = '-o=jsonpath={.spec.endpoint.retrySchedule}';
  const schedule: string[] = JSON.parse(await kubectl(cluster, ['get', 'wsub', 'acme-orders', '-n', 'globex', path]));
  narrator.tell(`the endpoint fails twice now; the subscription's retry schedule is ${schedule.join(', ')}`);
  receiver.failNext(2);
  const answers: Answer[] = [];
  for (const number of [11, 12, 13]) answers.push(await publish(order(OPEN_KEY, number)));
  narrator.observe(
    `published three events of ${OPEN_KEY}: ${answers.map(describeAnswer).join(', ')}`,
    answers.every(({ status }) => status === 202),
    'should be 202 each',
  );
  const ids = answers.map(({ id }) => id);
  const attempts: Received[] = [];
  while (!attempts.some(({ id, status }) => id === ids[2] && status === 200)) {
    const next = await receiver.waitFor(got => ids.includes(got.id) && !attempts.includes(got), DELIVERED_WITHIN_MS);
    if (next === undefined) break;
    const wait = attempts.length === 0 ? '' : `, ${formatMs(next.atMs - (attempts.at(-1)?.atMs ?? 0))} later`;
    narrator.tell(`  event ${ids.indexOf(next.id) + 1} of 3 answered ${next.status}${wait}; ${verdict(next)}`);
    attempts.push(next);
  }
  const story = attempts.map(({ id, status }) => `${ids.indexOf(id) + 1}:${status}`).join(' ');
  const early = [0, 1].filter(n => gapMs(attempts, n) < secondsOf(schedule[n]) * 1_000 - CLOCKS_DIFFER_MS);
  narrator.observe(
    `${attempts.filter(({ status }) => status === 200).length} of 3 delivered, after ${attempts.length} attempts`,
    story === '1:503 1:503 1:200 2:200 3:200' && early.length === 0,
    'should be: the first one 503, 503, 200, no earlier than the schedule says, then the others in order',
  );
}

/** This uses two clocks: the Redis clock for the schedule, and the clock of this process for the arrival. */
const CLOCKS_DIFFER_MS = 20;

function gapMs(attempts: readonly Received[], n: number): number {
  return (attempts[n + 1]?.atMs ?? 0) - (attempts[n]?.atMs ?? 0);
}

function secondsOf(duration: string | undefined): number {
  return Number(duration?.replace(/s$/, ''));
}

/** Shows that revoking an activation closes the gate, and that undoing it opens the gate. */
export async function tellRevocation(scene: Scene): Promise<void> {
  const { narrator } = scene;
  await setRevoked(scene, true);
  await tellClosedGate(scene, OPEN_KEY);
  await setRevoked(scene, false);
  const answer = await scene.publish(order(OPEN_KEY, 21));
  const received = await scene.receiver.waitFor(({ id }) => id === answer.id, DELIVERED_WITHIN_MS);
  narrator.observe(
    `published order.created of ${OPEN_KEY}: ${describeAnswer(answer)}; ${received === undefined ? 'not delivered' : `delivered ${formatMs(received.atMs - answer.answeredAtMs)} later`}`,
    received?.status === 200,
    'should be delivered again',
  );
}

async function setRevoked({ cluster, narrator }: Scene, revoked: boolean): Promise<void> {
  const started = performance.now();
  const activation = ['globex-customer-42', '-n', 'acme'];
  const patch = JSON.stringify({ spec: { revoked } });
  await kubectl(cluster, ['patch', 'activation', ...activation, '--type=merge', '-p', patch]);
  const condition = `--for=condition=Effective=${!revoked}`;
  await kubectl(cluster, ['wait', condition, '--timeout=20s', 'activation', ...activation]);
  const path = '-o=jsonpath={.status.conditions[?(@.type=="Effective")].reason}';
  const reason = await kubectl(cluster, ['get', 'activation', ...activation, path]);
  narrator.tell(
    `activation globex-customer-42 patched to revoked: ${revoked}; Effective=${!revoked} (${reason}) after ${formatMs(performance.now() - started)}`,
  );
}

async function until(read: () => Promise<number>, enough: (value: number) => boolean): Promise<number> {
  let value = await read();
  for (let tries = 0; !enough(value) && tries < 100; tries++) {
    await new Promise(resolve => setTimeout(resolve, 50));
    value = await read();
  }
  return value;
}
