import { Cluster, type Redis } from 'ioredis';

/** The delay before a rejected subscription is resent, in milliseconds. */
const AGAIN_MS = 5_000;

/**
 * Subscribes to the channels using each new connection, and again until Redis accepts this, for example after the user
 * has received the permission.
 *
 * @param on.listening called if messages may have been lost
 */
export function keepSubscribed(
  subscriber: Redis,
  channels: readonly string[],
  on: { readonly listening: () => void; readonly failure: (error: Error) => void },
): void {
  subscriber.on('ready', () => {
    const { stream } = subscriber;
    const subscribe = () => {
      if (subscriber.status !== 'ready' || subscriber.stream !== stream) return;
      subscriber.subscribe(...channels).then(on.listening, (error: Error) => {
        on.failure(error);
        setTimeout(subscribe, AGAIN_MS).unref();
      });
    };
    subscribe();
  });
}

/**
 * Reconnects a subscriber whose connection is older than the last failure of the connection for commands. Without this,
 * it would keep waiting for messages of a server that hangs or that another server has replaced at the same address.
 */
export function renewWith(commands: Redis | Cluster, subscriber: Redis): void {
  // The subscriber of a Cluster leaves its node together with the other connections.
  if (commands instanceof Cluster) return;
  let isOlder = false;
  subscriber.on('ready', () => (isOlder = false));
  commands.on('close', () => (isOlder = subscriber.status === 'ready'));
  commands.on('ready', () => {
    if (isOlder && subscriber.status === 'ready') subscriber.disconnect(true);
    isOlder = false;
  });
}
