import { type Redis, type SentinelConnectionOptions, SentinelConnector } from 'ioredis';

/** The function that connects to a Sentinel. The type of the connector does not include it. */
interface Connects {
  connectToSentinel(...args: readonly unknown[]): Redis;
}

/**
 * Finds the master using Sentinels. The connections that wait for a failover have no listener for errors, so ioredis
 * would print each of their failed attempts to standard error, several times per second while a Sentinel is
 * unavailable. Redis can still be used in the meantime. The reason why a lookup has failed is reported elsewhere.
 */
export class SentinelConnections extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const connects = this as unknown as Connects;
    const connect = connects.connectToSentinel.bind(this);
    connects.connectToSentinel = (...args) => connect(...args).on('error', () => {});
  }
}
