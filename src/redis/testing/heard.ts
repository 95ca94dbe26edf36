import type { RedisClient } from '../client.ts';

/** Subscribes to the channel `news`. Returns its messages so far, and `listening` for each new subscription. */
export function hearNews(client: Pick<RedisClient, 'subscribe'>): readonly string[] {
  const heard: string[] = [];
  client.subscribe(
    ['news'],
    (_channel, message) => heard.push(message),
    () => heard.push('listening'),
  );
  return heard;
}
