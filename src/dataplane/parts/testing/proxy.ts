import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts a proxy for a Redis. The proxy can lose answers or hold back everything for some time. */
export async function startProxy(target: string) {
  const { port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let isPaused = false;
  let answersToLose = 0;
  const server = createServer(client => {
    const upstream = connect(Number(port), '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    let callsScript = false;
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    client.on('data', data => {
      callsScript = data.includes('evalsha');
      upstream.write(data);
    });
    upstream.on('data', data => {
      if (answersToLose === 0 || !callsScript) return void client.write(data);
      answersToLose--;
      end();
    });
    if (isPaused) for (const socket of pair) socket.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const sockets of pairs) for (const socket of sockets) socket.destroy();
    server.close();
  });
  const each = (change: (socket: Socket) => void) => {
    for (const sockets of pairs) for (const socket of sockets) change(socket);
  };
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The scripts that are called next will be run, but their connections are closed and there is no answer. */
    loseAnswers(count: number) {
      answersToLose = count;
    },
    lost: () => answersToLose === 0,
    pause() {
      isPaused = true;
      each(socket => socket.pause());
    },
    resume() {
      isPaused = false;
      each(socket => socket.resume());
    },
  };
}
