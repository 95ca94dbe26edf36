/** An event as a producer sends it; `key` is another ingress key than the usual one. */
export type Publication = {
  readonly type: string;
  readonly groupKey: string;
  readonly data: unknown;
  readonly id?: string;
  readonly key?: string;
};

/** What ingress answered. Times are of performance.now(). */
export type Answer = {
  readonly status: number;
  /** The id of the accepted event; undefined when it was refused. */
  readonly id: string | undefined;
  readonly duplicate: boolean | undefined;
  /** The stable code of a refusal (RFC 9457 document); undefined when there is none. */
  readonly code: string | undefined;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
};

export type Publish = (publication: Publication) => Promise<Answer>;

/** Posts events to one queue. @param options.url `http://host:port/events/<tenant>/<queue>` */
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
