import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild, waitUntilReady } from '../child-process.ts';
import { freePort } from '../free-port.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Pods that Prometheus scrapes, with the labels of their series. */
export interface Target {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** A rule, as shown by Prometheus. */
export interface EvaluatedRule {
  readonly name: string;
  readonly state: 'inactive' | 'pending' | 'firing';
  /** `unknown` before the first evaluation. */
  readonly health: 'ok' | 'err' | 'unknown';
}

export type Prometheus = {
  /** Returns the values of an expression that results in a vector, one for each series. */
  readonly query: (expression: string) => Promise<number[]>;
  readonly rules: () => Promise<EvaluatedRule[]>;
  readonly stop: () => Promise<void>;
};

const READY_DEADLINE_MS = 30_000;

/**
 * Starts Prometheus.
 * @param options.groups rules in the format of a rule file
 */
export async function startPrometheus(options: {
  readonly command: string;
  readonly targets: readonly Target[];
  readonly groups: readonly object[];
  readonly everySeconds: number;
}): Promise<Prometheus> {
  const { command, targets, groups, everySeconds } = options;
  const folder = await temporaryFolder('prometheus');
  const interval = `${everySeconds}s`;
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: ['rules.json'],
    scrape_configs: [{ job_name: 'pods', static_configs: targets }],
  };
  // JSON is valid YAML.
  await writeFile(join(folder.path, 'prometheus.json'), JSON.stringify(config));
  await writeFile(join(folder.path, 'rules.json'), JSON.stringify({ groups }));
  const address = `127.0.0.1:${await freePort()}`;
  const server = startChild({
    command,
    args: ['--config.file=prometheus.json', '--storage.tsdb.path=data', `--web.listen-address=${address}`],
    cwd: folder.path,
    log: join(folder.path, 'log'),
  });
  const isReady = async () => (await fetch(`http://${address}/-/ready`)).ok;
  await waitUntilReady(server, isReady, { name: 'prometheus', deadlineMs: READY_DEADLINE_MS });
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://${address}/api/v1/${path}`);
    const body = (await response.json()) as { readonly data: T; readonly error?: string };
    if (!response.ok) throw new Error(body.error);
    return body.data;
  };
  return {
    query: async expression => {
      const { result } = await get<{ readonly result: readonly { readonly value: readonly [number, string] }[] }>(
        `query?query=${encodeURIComponent(expression)}`,
      );
      return result.map(({ value }) => Number(value[1]));
    },
    rules: async () => {
      const found = await get<{ readonly groups: readonly { readonly rules: readonly EvaluatedRule[] }[] }>('rules');
      return found.groups.flatMap(({ rules }) => rules);
    },
    stop: async () => {
      await server.stop();
      await folder.remove();
    },
  };
}
