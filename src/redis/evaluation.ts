import { createHash } from 'node:crypto';
import { Cluster, type Redis } from 'ioredis';
import type { Argument, Reply } from './client.ts';
import type { Replicas } from './connection/replicas.ts';
import { keySlot } from './key-slot.ts';

/**
 * Returns the name of the master that has this key, i.e. its host and port. It is '' if it is not known, and without a
 * Cluster.
 */
export function masterOf(redis: Redis | Cluster, key: string): string {
  return redis instanceof Cluster ? (redis.slots[keySlot(key)]?.[0] ?? '') : '';
}

/** A call of a script. */
export interface Evaluation {
  readonly source: string;
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
  /** True if bulk strings are returned as Buffers. */
  readonly buffers: boolean;
}

const READS_ONLY = '#!lua flags=no-writes';
/** Returns whether a script does not write. */
export const onlyReads = (source: string): boolean => source.startsWith(READS_ONLY);
/** Specifies that no caller is waiting for a script, because writes lost in a failover are repeated. */
const UNCONFIRMED = /^--@unconfirmed$/m;

interface Script {
  /** SHA-1. */
  readonly hash: string;
  /** True if replicas must confirm the writes. */
  readonly confirmed: boolean;
}

const isNoScript = (error: unknown) => error instanceof Error && error.message.startsWith('NOSCRIPT');
const isForbidden = (error: unknown) => error instanceof Error && error.message.startsWith('NOPERM');
const isMoved = (error: unknown) => error instanceof Error && error.message.startsWith('MOVED ');

/**
 * Runs scripts using their hash. If Redis doesn't know a script, one call sends its text. The others wait for it.
 *
 * @param options.replicas if set, a script that writes is only done once replicas have confirmed it
 */
export function createEvaluation(options: {
  readonly redis: Redis | Cluster;
  readonly replicas: Replicas | undefined;
}): (call: Evaluation) => Promise<Reply> {
  const { redis, replicas } = options;
  const scripts = new Map<string, Script>();
  /**
   * The calls that are sending the text of a script, by master and hash. After a restart of Redis, thousands of calls
   * find out at the same time that it does not know a script. If each of them sent the text, which can have 75 KB, this
   * could require more memory than there is. Resolves with the error if the user is not allowed to send it.
   */
  const loading = new Map<string, Promise<unknown>>();

  function scriptOf(source: string): Script {
    let script = scripts.get(source);
    if (script === undefined) {
      const hash = createHash('sha1').update(source).digest('hex');
      script = { hash, confirmed: !(onlyReads(source) || UNCONFIRMED.test(source)) };
      scripts.set(source, script);
    }
    return script;
  }

  async function runAt(target: Redis | Cluster, { source, keys, args, buffers }: Evaluation): Promise<Reply> {
    const rest = [keys.length, ...keys, ...args] as const;
    const send = (command: string, script: string) =>
      (buffers ? target.callBuffer(command, script, ...rest) : target.call(command, script, ...rest)) as Promise<Reply>;
    const { hash } = scriptOf(source);
    const script = `${masterOf(redis, keys[0] ?? '')} ${hash}`;
    let forbidden: unknown;
    for (;;) {
      try {
        return await send('evalsha', hash);
      } catch (error) {
        if (!isNoScript(error)) throw error;
      }
      // If the script may not be loaded, fail at once, so that not each of thousands of calls tries to load it.
      if (forbidden !== undefined) throw forbidden;
      const known = loading.get(script);
      if (known === undefined) {
        const loaded = send('eval', source);
        const ended = loaded.then(
          () => undefined,
          (error: unknown) => (isForbidden(error) ? error : undefined),
        );
        loading.set(script, ended);
        void ended.then(() => loading.delete(script));
        return loaded;
      }
      forbidden = await known;
    }
  }

  function knownMaster(key: string): Redis | undefined {
    if (!(redis instanceof Cluster)) return redis;
    const name = masterOf(redis, key);
    return redis.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === name);
  }

  async function findMaster(key: string): Promise<Redis> {
    // The connection to the previous master was closed. The Cluster client only learns the new one from a response.
    await redis.call('exists', key);
    const node = knownMaster(key);
    if (node === undefined) throw new Error('no master of the Redis Cluster is known for this key');
    return node;
  }

  /** Sends the call to a master directly because the write must be confirmed by the replicas of this master. */
  async function runReplicated(call: Evaluation, confirming: Replicas): Promise<Reply> {
    const key = call.keys[0] ?? '';
    let master = knownMaster(key) ?? (await findMaster(key));
    let reply: Reply;
    try {
      reply = await runAt(master, call);
    } catch (error) {
      if (!isMoved(error)) throw error;
      // The Cluster client follows the same answer and learns the new master.
      master = await findMaster(key);
      reply = await runAt(master, call);
    }
    await confirming.confirm(master);
    return reply;
  }

  return call =>
    replicas !== undefined && scriptOf(call.source).confirmed ? runReplicated(call, replicas) : runAt(redis, call);
}
