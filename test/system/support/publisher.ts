import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { createRandom } from '../../support/random.ts';

/** An event to publish. */
export interface Sample {
  readonly id: string;
  /** If undefined, the header is omitted. */
  readonly groupKey?: string;
  readonly body: Buffer;
  readonly sha256: string;
}

/** The final response of ingress. */
export interface Publication {
  readonly status: number;
  readonly body: {
    readonly id?: string;
    readonly duplicate?: boolean;
    readonly code?: string;
    readonly detail?: string;
  };
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The times at which the last request was sent and its response was received, using `performance.now()`. */
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly tries: number;
}

export interface Publisher {
  /** Sends one request. Rejects if there is a connection error. */
  readonly post: (sample: Sample, options?: PostOptions) => Promise<Publication>;
  /** Sends the event with the same id until the response status is below 500. @throws after `patienceMs` (60,000) */
  readonly publish: (sample: Sample, patienceMs?: number) => Promise<Publication>;
  /**
   * Publishes all events. The events of each group key are sent one after another (each event after the previous one
   * has been acknowledged), with up to `concurrency` keys at the same time.
   *
   * @returns the result of each event, by id
   */
  readonly publishAll: (samples: readonly Sample[], concurrency?: number) => Promise<Map<string, Publication>>;
  readonly close: () => Promise<void>;
}

export interface PostOptions {
  readonly key?: string;
  readonly query?: string;
  readonly queue?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns a publisher for one stream of the workspace `producer`. */
export function createPublisher(options: {
  readonly ingressUrl: string;
  readonly producer: string;
  readonly queue: string;
  readonly key: string;
}): Publisher {
  const pool = new Pool(options.ingressUrl, { connections: 64, headersTimeout: 30_000 });

  async function post(sample: Sample, more: PostOptions = {}): Promise<Publication> {
    const sentMs = performance.now();
    const response = await pool.request({
      method: 'POST',
      path: `/events/${tenantId(options.producer)}/${more.queue ?? options.queue}${more.query ?? ''}`,
      headers: {
        authorization: `Bearer ${more.key ?? options.key}`,
        'content-type': 'application/octet-stream',
        'webhook-id': sample.id,
        ...(sample.groupKey === undefined ? {} : { 'x-sluice-group-key': asHeader(sample.groupKey) }),
        ...more.headers,
      },
      body: sample.body,
    });
    const text = await response.body.text();
    const answeredMs = performance.now();
    const body = JSON.parse(text) as Publication['body'];
    return { status: response.statusCode, body, headers: response.headers, sentMs, answeredMs, tries: 1 };
  }

  async function publish(sample: Sample, patienceMs = 60_000): Promise<Publication> {
    const deadline = performance.now() + patienceMs;
    let cause: unknown;
    for (let tries = 1; ; tries++) {
      try {
        const answer = await post(sample);
        if (answer.status < 500) return { ...answer, tries };
        cause = answer.body.code;
      } catch (error) {
        cause = error;
      }
      if (performance.now() > deadline) throw new Error(`${sample.id} was not accepted`, { cause });
      await delay(50);
    }
  }

  async function publishAll(samples: readonly Sample[], concurrency = 32): Promise<Map<string, Publication>> {
    const published = new Map<string, Publication>();
    const lanes = [...Map.groupBy(samples, ({ groupKey, id }) => groupKey ?? `\0${id}`).values()];
    async function work(): Promise<void> {
      for (let lane = lanes.shift(); lane !== undefined; lane = lanes.shift()) {
        for (const sample of lane) published.set(sample.id, await publish(sample));
      }
    }
    await Promise.all(Array.from({ length: concurrency }, work));
    return published;
  }

  return { post, publish, publishAll, close: () => pool.destroy() };
}

/** Returns UTF-8 text as one-byte characters, as required for a header. */
function asHeader(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Returns the number of responses for each status. */
export function countStatuses(publications: Iterable<Publication>): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of publications) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/**
 * Returns events `<prefix><key>.<n>` with bodies of 0 to `maxBytes` bytes, including bytes that are not UTF-8. The last
 * events use all keys.
 */
export function makeSamples(options: {
  readonly groupKeys: readonly string[];
  readonly perKey: number;
  readonly prefix?: string;
  readonly maxBytes?: number;
  readonly seed?: number;
}): Sample[] {
  const random = createRandom(options.seed ?? 1);
  const samples: Sample[] = [];
  for (let n = 0; n < options.perKey; n++) {
    for (const groupKey of options.groupKeys) {
      const body = Buffer.alloc(Math.floor(random() * (options.maxBytes ?? 600)));
      for (let i = 0; i < body.length; i++) body[i] = random() * 256;
      const id = `${options.prefix ?? ''}${groupKey.replaceAll(/[^\w-]/g, '_')}.${n}`;
      samples.push(makeSample(id, groupKey, body));
    }
  }
  return samples;
}

export function makeSample(id: string, groupKey: string | undefined, body: Buffer | string): Sample {
  const bytes = Buffer.from(body);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { id, ...(groupKey === undefined ? {} : { groupKey }), body: bytes, sha256 };
}
