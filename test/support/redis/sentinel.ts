import { writeFile } from 'node:fs/promises';
import { type ChildProcess, startChild, waitUntilReady } from '../child-process.ts';
import { freePort } from '../free-port.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { redisCommand } from './server.ts';

export type Sentinels = {
  readonly ports: readonly number[];
  /** Returns the port of the master according to the first Sentinel. */
  readonly masterPort: () => Promise<number>;
  /** Suspends the process of a Sentinel, which keeps its connections open. */
  readonly pause: (index: number) => void;
  /** Stops the Sentinels and removes their folder. */
  readonly stop: () => Promise<void>;
};

const READY_DEADLINE_MS = 30_000;
const LOOPBACK = '127.0.0.1';

/**
 * Starts three Sentinels on free loopback ports, which replace a master that is unavailable for a second. Resolves when
 * all of them have discovered each other and the replicas.
 * @param options.master port of the master
 * @param options.host address of this machine for the master and the Sentinels. Defaults to 127.0.0.1
 * @param options.extra additional lines of sentinel.conf, by the index of the Sentinel
 */
export async function startSentinels(options: {
  readonly name: string;
  readonly master: number;
  readonly host?: string;
  /** Defaults to 1. */
  readonly replicas?: number;
  readonly extra?: (index: number) => readonly string[];
}): Promise<Sentinels> {
  const { name, master, host = LOOPBACK, replicas = 1, extra = () => [] } = options;
  const folder = await temporaryFolder('sentinel');
  const children: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(children.map(({ exited }) => exited));
    await folder.remove();
  };
  const ports: number[] = [];
  try {
    for (let index = 0; index < 3; index++) {
      const port = await freePort();
      const file = `${folder.path}/sentinel-${index}.conf`;
      const lines = [
        `port ${port}`,
        `bind ${[...new Set([LOOPBACK, host])].join(' ')}`,
        `dir ${folder.path}`,
        ...extra(index),
        `sentinel monitor ${name} ${host} ${master} 2`,
        `sentinel down-after-milliseconds ${name} 1000`,
        `sentinel failover-timeout ${name} 5000`,
      ];
      await writeFile(file, `${lines.join('\n')}\n`);
      ports.push(port);
      children.push(startChild({ command: 'redis-server', args: [file, '--sentinel'], log: `${file}.log` }));
    }
    for (const [index, port] of ports.entries()) {
      await waitUntilReady(
        children[index] as ChildProcess,
        async () => (await knownTo(port, name)) === `2 ${replicas}`,
        {
          name: 'redis-sentinel',
          deadlineMs: READY_DEADLINE_MS,
          everyMs: 100,
        },
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ports,
    pause: index => children[index]?.kill('SIGSTOP'),
    masterPort: async () => {
      const address = await redisCommand(ports[0] as number, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name);
      return Number((address as string[])[1]);
    },
    stop,
  };
}

/** Returns the number of other Sentinels and replicas known to a Sentinel. */
async function knownTo(port: number, name: string): Promise<string> {
  const fields = (await redisCommand(port, 'SENTINEL', 'MASTER', name)) as string[];
  const of = (field: string) => fields[fields.indexOf(field) + 1];
  return `${of('num-other-sentinels')} ${of('num-slaves')}`;
}
