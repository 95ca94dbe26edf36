import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from '../../telemetry/log.ts';
import { backoffMs } from '../../time/backoff.ts';
import type { RedisConnections } from './connections.ts';
import type { RedisNode } from './redis-url.ts';

export interface PushListener {
  readonly onMessage: (message: Buffer) => void;
  /**
   * The subscription is active from now on, either for the first time or again, so earlier messages may have been
   * missed.
   */
  readonly onListening: () => void;
}

/**
 * Subscribes to sharded channels of a single Redis, or of a Cluster. In a Cluster, a channel belongs to the node of its
 * slot. The client reconnects if the connection is lost or if a channel has moved to another node. Any messages that
 * are published in the meantime will be lost.
 */
export interface PushConnection {
  readonly listen: (channel: string, listener: PushListener) => void;
  /**
   * Resolves when the listener has received all messages published before this call. Rejects if this is not known
   * because the connection was lost.
   */
  readonly fence: (channel: string) => Promise<void>;
  /** Returns true if the subscription is active. */
  readonly isListening: (channel: string) => boolean;
  /** Returns the reason why a channel could not be subscribed to several times in a row, until it has been. */
  readonly problem: () => Error | undefined;
  readonly leave: (channel: string) => void;
  readonly close: () => void;
}

interface Node {
  readonly address: string;
  readonly redis: Redis;
  readonly connected: Promise<void>;
  readonly channels: Set<Channel>;
  /** MOVED replies to our own requests, which ioredis reports as if a channel had moved. */
  refused: number;
}

interface Channel {
  readonly name: string;
  readonly listener: PushListener;
  node: Node | undefined;
  placing: boolean;
}

const WAIT = { firstMs: 100, mostMs: 1_000 };
/** The interval for checking connections. This interval is longer than the time after which a command fails. */
const CHECK_MS = 10_000;
/** The maximum number of channels to subscribe to at the same time. */
const MOST_CALLS = 64;
const MOVED = /^MOVED \d+ (.*):(\d+)$/;
/** The number of times to follow a redirection without a delay. */
const MOST_HOPS = 3;
/** A failover, which takes about three seconds, also causes some failures. */
const REPORTED_FAILURES = 5;

function addressOf({ host, port }: RedisNode): string {
  return `${host}:${port}`;
}

/** Returns the node mentioned in an error. If the name is empty, it is the node that replied (RESP of MOVED). */
function parseMoved(error: unknown, from: string): string | undefined {
  const [, host, port] = MOVED.exec((error as Error).message) ?? [];
  if (port === undefined) return undefined;
  const known = host === '' || host === '?' ? from.slice(0, from.lastIndexOf(':')) : host;
  return `${known}:${port}`;
}

export function createPushConnection(connections: RedisConnections, log: Logger): PushConnection {
  const nodes = new Map<string, Node>();
  const channels = new Map<string, Channel>();
  const failing = new Map<Channel, Error>();
  /** The calls that wait until there are fewer calls in progress. */
  const turns: (() => void)[] = [];
  let calls = 0;
  let closed = false;
  let seed = 0;

  /** Returns a node that may know the node of a channel. The nodes in the settings may have failed. */
  function nextSeed(): string {
    if (!connections.cluster) return '';
    const addresses = [...connections.nodes.map(addressOf), ...nodes.keys()];
    return addresses[seed++ % addresses.length] as string;
  }

  function nodeAt(address: string): Node {
    const known = nodes.get(address);
    if (known !== undefined) return known;
    const at = address.lastIndexOf(':');
    const where = address === '' ? undefined : { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
    const redis = connections.createOnce(where);
    const node: Node = { address, redis, connected: redis.connect(), channels: new Set(), refused: 0 };
    node.connected.catch(() => {});
    nodes.set(address, node);
    redis.on('error', error => log.debug({ err: error }, 'push connection error'));
    redis.on('smessageBuffer', (name: Buffer, message: Buffer) => {
      const channel = channels.get(name.toString());
      if (channel?.node === node) channel.listener.onMessage(message);
    });
    redis.on('close', () => drop(node));
    redis.on('moved', () => {
      // Replies to our own requests are delivered in the same turn.
      setImmediate(() => {
        if (node.refused > 0) node.refused--;
        else for (const channel of node.channels) replace(channel);
      });
    });
    return node;
  }

  function drop(node: Node): void {
    if (nodes.get(node.address) === node) nodes.delete(node.address);
    node.redis.disconnect();
    for (const channel of node.channels) replace(channel);
  }

  function replace(channel: Channel): void {
    channel.node?.channels.delete(channel);
    channel.node = undefined;
    if (!channel.placing) void place(channel);
  }

  /** Limits the calls in progress, because a lost connection concerns all channels. */
  async function inTurn(call: () => Promise<unknown>): Promise<void> {
    // In a Cluster, a node that hangs would delay the channels of the others.
    if (calls >= MOST_CALLS && !connections.cluster) await new Promise<void>(resolve => turns.push(resolve));
    else calls++;
    try {
      await call();
    } finally {
      const next = turns.shift();
      if (next === undefined) calls--;
      else next();
    }
  }

  const isWanted = (channel: Channel) => !closed && channels.get(channel.name) === channel;

  async function place(channel: Channel): Promise<void> {
    channel.placing = true;
    let address = nextSeed();
    let failures = 0;
    let hops = 0;
    while (isWanted(channel) && channel.node === undefined) {
      const node = nodeAt(address);
      try {
        await node.connected;
        await inTurn(() => node.redis.ssubscribe(channel.name));
        if (!channels.has(channel.name)) node.redis.sunsubscribe(channel.name).catch(() => {});
        if (nodes.get(node.address) !== node || !isWanted(channel)) continue;
        channel.node = node;
        node.channels.add(channel);
      } catch (error) {
        const moved = parseMoved(error, address);
        if (moved !== undefined) node.refused++;
        else if ((error as Error).message === 'Command timed out') drop(node);
        address = moved ?? nextSeed();
        if (moved !== undefined && hops++ < MOST_HOPS) continue;
        hops = 0;
        log.debug({ err: error, channel: channel.name }, 'failed to subscribe to a channel');
        if (++failures >= REPORTED_FAILURES && isWanted(channel)) failing.set(channel, error as Error);
        await delay(backoffMs(WAIT, failures, Math.random));
      }
    }
    failing.delete(channel);
    channel.placing = false;
    if (isWanted(channel)) channel.listener.onListening();
  }

  async function fence(name: string): Promise<void> {
    const channel = channels.get(name);
    const node = channel?.node;
    if (channel === undefined || node === undefined) throw new Error(`${name} has no subscription`);
    try {
      // The reply is only sent after all earlier messages.
      await node.redis.ssubscribe(name);
    } catch (error) {
      if (parseMoved(error, node.address) === undefined) drop(node);
      else {
        node.refused++;
        replace(channel);
      }
      throw error;
    }
    if (channel.node !== node) throw new Error(`${name} has been resubscribed`);
  }

  /**
   * Leaves servers that hang. A server that hangs does not close its connections, and idle parts send nothing that
   * could fail.
   */
  function checkNodes(): void {
    for (const node of nodes.values()) {
      const [channel] = node.channels;
      if (channel !== undefined) fence(channel.name).catch(() => {});
    }
  }
  const checking = setInterval(checkNodes, CHECK_MS).unref();

  return {
    isListening: name => channels.get(name)?.node !== undefined,
    listen(name, listener) {
      const channel: Channel = { name, listener, node: undefined, placing: false };
      channels.set(name, channel);
      void place(channel);
    },
    fence,
    problem: () => failing.values().next().value,
    leave(name) {
      const channel = channels.get(name);
      if (channel === undefined) return;
      channels.delete(name);
      channel.node?.channels.delete(channel);
      channel.node?.redis.sunsubscribe(name).catch(() => {});
    },
    close() {
      closed = true;
      clearInterval(checking);
      channels.clear();
      for (const node of nodes.values()) node.redis.disconnect();
      nodes.clear();
    },
  };
}
