import type { Argument, RedisClient } from './client.ts';
import { integrationKeys, queueKeys, tenantKeys } from './keys.ts';

const WEEK_MS = 7 * 86_400_000;

/** Marks of the series lie in the hash of a week (`seriesMarks`). */
export function weekOf(nowMs: number): number {
  return Math.floor(nowMs / WEEK_MS);
}

/** Whose counts are folded: a queue's, a part's, or an integration's. */
export type TrafficSource =
  | { readonly tenant: string; readonly queue: string }
  /** A part of a stream; `meta` is its hash. */
  | { readonly tenant: string; readonly queue: string; readonly number: number; readonly meta: string }
  /** Whose tenant is said by what it counted. */
  | { readonly integration: string };

/** Brings what queues and integrations counted, each in its own slot, into their producers' series. */
export interface TrafficStore {
  /**
   * Adds what the source counted and the series has not. May be repeated at any time, by anybody: each count is added
   * once, to the minute in which it was counted.
   *
   * @param known what the last call answered: where nothing was counted since, nothing is done
   * @returns what is in the series now, to be given to the next call
   */
  readonly fold: (source: TrafficSource, nowMs: number, known?: string) => Promise<string>;
}

/** Where a source keeps its counts, and what they are called in the series. */
function placeOf(source: TrafficSource): { key: string; fields: readonly string[]; names: readonly string[] } {
  if ('integration' in source) {
    const { integration } = source;
    return { key: integrationKeys(integration).meta, fields: ['traffic'], names: [`i:${integration}`] };
  }
  const { tenant, queue } = source;
  if ('meta' in source) {
    const name = `${queue}:${source.number}`;
    return { key: source.meta, fields: ['in', 'out'], names: [`a:${name}`, `o:${name}`] };
  }
  return {
    key: queueKeys(tenant, queue).meta,
    fields: ['arrived', 'passed'],
    names: [`a:${queue}`, `p:${queue}`],
  };
}

/** `<begun>,<tenant or ''>(;<minute> <a> <b> <c>)*` (`lib/traffic.lua`) without the minutes that are over. */
function pruned(text: string): string {
  const [head = '', ...minutes] = text.split(';');
  return minutes.length === 0 ? head : `${head};${minutes.at(-1)}`;
}

export function createTrafficStore(redis: RedisClient): TrafficStore {
  return {
    async fold(source, nowMs, known) {
      const { key, fields, names } = placeOf(source);
      const texts = ((await redis.call('hmget', key, ...fields)) as (string | null)[]).map(text => text ?? '');
      const said = texts.join('\n');
      if (said === known || said.trim() === '') return said;
      const first = texts.find(text => text !== '') as string;
      const tenant = 'tenant' in source ? source.tenant : first.slice(first.indexOf(',') + 1, first.indexOf(';'));
      const t = tenantKeys(tenant);
      const week = weekOf(nowMs);
      const args: Argument[] = [nowMs];
      const longer: Argument[] = [];
      for (const [i, text] of texts.entries()) {
        if (text === '') continue;
        args.push(names[i] as string, text);
        if (text !== pruned(text)) longer.push(fields[i] as string, text);
      }
      const marks = [week, week - 1, week + 1].map(t.seriesMarks);
      await redis.run('fold-traffic', [t.series, ...marks], args);
      if (longer.length > 0) await redis.run('prune-traffic', [key], longer);
      return texts.map(pruned).join('\n');
    },
  };
}
