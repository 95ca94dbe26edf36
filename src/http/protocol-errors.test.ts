import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { MOST_TIMED_OUT } from './protocol-errors.ts';
import { createTestServer } from './testing/test-server.ts';

const CLIENTS = 10 * MOST_TIMED_OUT;

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

test('connections that time out at the same time are closed in several iterations of the event loop', async () => {
  let inIteration = 0;
  const closed: number[] = [];
  const server = createTestServer({
    limits: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_000 },
    onPlainAnswer: () => void inIteration++,
  });
  let isCounting = true;
  const count = () => {
    if (inIteration > 0) closed.push(inIteration);
    inIteration = 0;
    if (isCounting) setImmediate(count);
  };
  count();
  const port = await server.listen(0, '127.0.0.1');
  const clients = Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1'));
  const texts = clients.map(client => {
    const state = { text: '' };
    client.on('data', chunk => (state.text += chunk.toString('latin1'))).on('error', () => {});
    return state;
  });
  for (const client of clients) client.write('GET / HTTP/1.1\r\nX-A: ');
  await Promise.all(clients.map(client => once(client, 'close')));
  await vi.waitFor(() => expect(closed.reduce((sum, each) => sum + each, 0)).toBe(CLIENTS), SOON);
  expect(texts.filter(({ text }) => text.startsWith('HTTP/1.1 408 ')).length).toBe(CLIENTS);
  expect(Math.max(...closed)).toBeLessThanOrEqual(MOST_TIMED_OUT);
  isCounting = false;
  await server.close();
}, 60_000);
