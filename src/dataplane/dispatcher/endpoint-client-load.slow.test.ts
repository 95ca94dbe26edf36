import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type AttemptResult, createEndpointClient, RESPONSE_BODY_MAX } from './endpoint-client.ts';
import { answer, startScriptedEndpoint } from './testing/scripted-endpoint.ts';

const MIB = 1024 * 1024;

function openClient() {
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
  onTestFinished(client.close);
  return (url: string, timeoutMs: number) => client.attempt({ url, headers: '', body: Buffer.from('{}'), timeoutMs });
}

async function serve(script: Parameters<typeof startScriptedEndpoint>[0]) {
  const endpoint = await startScriptedEndpoint(script);
  onTestFinished(endpoint.close);
  return endpoint;
}

/** Writes the data repeatedly, as fast as it is read. */
function pour(socket: Socket, piece: Buffer): void {
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', more);
  more();
}

/** Returns the memory of the process except for its code, in bytes. */
function memory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** On a busy machine, opening this number of connections takes time. */
const PATIENCE = { timeout: 60_000 };

test(
  'many endless bodies, at the same time and repeatedly, only take the memory of the stored data',
  PATIENCE,
  async () => {
    const head = 'HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n';
    const chunk = Buffer.from(`10000\r\n${'x'.repeat(65_536)}\r\n`);
    const endless = await serve(socket => {
      socket.write(head);
      pour(socket, chunk);
    });
    const attempt = openClient();
    const together = 100;
    const round = () => Promise.all(Array.from({ length: together }, () => attempt(endless.url, 30_000)));
    await round();
    const beforeBytes = memory();
    let mostBytes = 0;
    for (let n = 0; n < 6; n++) {
      const results = await round();
      mostBytes = Math.max(mostBytes, memory() - beforeBytes);
      for (const { reason, truncated, responseBody } of results) {
        expect([reason, truncated, responseBody.length]).toEqual(['http_5xx', true, RESPONSE_BODY_MAX]);
      }
    }
    // A read buffer of 64 KiB on both sides for each connection, and memory that has not been collected yet.
    expect(mostBytes).toBeLessThan(96 * MIB);
  },
);

test('slow or endless endpoints do not delay others', PATIENCE, async () => {
  const trickled = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n');
  const stalls = await serve(() => {});
  const trickles = await serve(socket => {
    const timer = setInterval(() => socket.write(trickled), 50);
    socket.on('close', () => clearInterval(timer));
  });
  const half = await serve(socket => socket.write('HTTP/1.1 200 OK\r\ncontent-le'));
  const good = await serve(socket => socket.write(answer(204)));
  const attempt = openClient();

  let ended = 0;
  const hanging: Promise<AttemptResult>[] = [];
  for (const { url } of [stalls, trickles, half]) {
    for (let n = 0; n < 64; n++) {
      const one = attempt(url, 30_000);
      void one.then(() => ended++);
      hanging.push(one);
    }
  }
  let delivered = 0;
  for (let n = 0; n < 50; n++) {
    const results = await Promise.all(Array.from({ length: 20 }, () => attempt(good.url, 30_000)));
    delivered += results.filter(({ outcome }) => outcome === 'delivered').length;
  }
  expect(delivered).toBe(1_000);
  // All of them complete before any of the others ends.
  expect(ended).toBe(0);
  expect(stalls.connections() + trickles.connections() + half.connections()).toBe(192);
});
