import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { useSmallWorld } from '../support/use-small-world.ts';

/** Begins a request and never completes it, so that ingress waits for it when it stops. */
async function holdRequest(ingressUrl: string): Promise<void> {
  const { port, hostname } = new URL(ingressUrl);
  const socket = connect(Number(port), hostname).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write('POST /events/x/y HTTP/1.1\r\n');
}

describe.each([
  ['in a separate process', true],
  ['in a process with all roles, which also waits for a request', false],
] as const)('a dispatcher %s', (_where, separateRoles) => {
  const world = useSmallWorld({
    partners: ['ada'],
    groupKeys: ['key'],
    endpoint: { timeoutSeconds: 30 },
    separateRoles,
  });

  it('records an attempt that takes longer than the process has to stop', { timeout: 120_000 }, async () => {
    const { receiver, publisher, redis, sluice } = world;
    receiver.behave(({ earlier }) => (earlier === 0 ? { status: 204, after: new Promise(() => {}) } : 204));
    await publisher.publish(makeSample('slow', 'key', 'x'));
    await eventually('the attempt has begun', async () => receiver.attempts.length === 1);
    const stopping = world.processes.get('dispatcher') ?? sluice;
    if (!separateRoles) await holdRequest(sluice.ingressUrl);
    const begunMs = performance.now();
    // The process exits with an error after 20 s, and pods are killed after 30 s.
    expect(await stopping.stop()).toEqual({ code: 0, signal: null });
    console.log(`stopped after ${Math.round(performance.now() - begunMs)} ms`);
    // The number of attempts, and of claims that were lost. An event that is often lost is considered to be a cause of
    // crashes.
    const [key = ''] = (await redis.command('KEYS', '*:try:*')) as string[];
    expect(await redis.command('HVALS', key)).toEqual([expect.stringMatching(/^1 0 \d+,\w+ aborted \w+$/)]);
    await stopping.restart();
    await receiver.arrival('slow', 'ada');
    expect(receiver.attempts.map(({ id }) => id)).toEqual(['slow', 'slow']);
  });
});
