import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

const SERVER = `
const { createServer } = require('node:net');
const { parentPort } = require('node:worker_threads');
const server = createServer(socket => socket.on('error', () => {}).on('data', () => socket.write('here')));
server.listen(0, '127.0.0.1', 1, () => {
  parentPort.postMessage(server.address().port);
  parentPort.once('message', busyMs => {
    parentPort.postMessage('busy');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, busyMs);
  });
});
`;

/**
 * Starts an endpoint at 127.0.0.1 that does not accept connections for a while, as if it were far away. The kernel
 * drops the first packet of a connection during this time, and repeats it after a second.
 */
export async function startFarEndpoint(busyMs: number): Promise<{ port: number; close: () => Promise<void> }> {
  const worker = new Worker(SERVER, { eval: true });
  const [port] = (await once(worker, 'message')) as [number];
  worker.postMessage(busyMs);
  await once(worker, 'message');
  // Without accepting any, the kernel still opens as many connections as the server allows to wait.
  const waiting: Socket[] = [];
  for (let at = 0; at < 2; at++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    await once(socket, 'connect');
    waiting.push(socket);
  }
  return {
    port,
    async close() {
      for (const socket of waiting) socket.destroy();
      await worker.terminate();
    },
  };
}
