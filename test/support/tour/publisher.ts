/** An event of a producer. `key` replaces the default ingress key. */
export type Publication = {
  readonly type: string;
  readonly groupKey: string;
  readonly data: unknown;
  readonly id?: string;
  readonly key?: string;
};

/** The response of ingress. Times use performance.now(). */
export type Answer = {
  readonly status: number;
  /** The id of the accepted event, or undefined if it was rejected. */
  readonly id: string | undefined;
  readonly duplicate: boolean | undefined;
  /** The code of the problem document (RFC 9457), or undefined if there is none. */
  readonly code: string | undefined;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
};

export type Publish = (publication: Publication) => Promise<Answer>;

/** Creates a publisher for one stream. @param options.url `http://host:port/events/<tenant>/<queue>` */
export function createPublisher(options: { url: string; key: string }): Publish {
  return async ({ type, groupKey, data, id, key }) => {
    const sentAtMs = performance.now();
    const response = await fetch(options.url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key ?? options.key}`,
        'content-type': 'application/json',
        'x-sluice-event-type': type,
        'x-sluice-group-key': groupKey,
        ...(id === undefined ? {} : { 'webhook-id': id }),
      },
      body: JSON.stringify(data),
      signal: AbortSignal.timeout(10_000),
    });
    const answeredAtMs = performance.now();
    const body = (await response.json().catch(() => ({}))) as { id?: string; duplicate?: boolean; code?: string };
    return {
      status: response.status,
      id: body.id,
      duplicate: body.duplicate,
      code: body.code,
      sentAtMs,
      answeredAtMs,
    };
  };
}
