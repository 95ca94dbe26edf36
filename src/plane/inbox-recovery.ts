import type { Permission } from './inbox-reader.ts';
import type { InboxRef } from './inbox-ref.ts';

type Refused = Exclude<Permission, 'OPEN' | 'INACTIVE'>;

/**
 * Operations that can be used after an outage of an endpoint to send a test event and to recover failed events. Both
 * are free.
 */
export interface InboxRecovery {
  /**
   * Makes failed deliveries due immediately if their event was accepted since `sinceMs`. Includes deliveries that are
   * waiting for a retry, and dead letters, which will get a full retry schedule again. The order of the events is
   * preserved. A recovery is not a replay and is free of charge. For this reason, each dead letter can only be
   * recovered once. Dead replays can't be recovered. The number of unchanged deliveries is returned as
   * `replayRequired`. Each call processes 20,000 deliveries. Repeat the call using the returned cursor until there is
   * no cursor anymore. `mayGoOn` is called after every 1,000 deliveries. The call ends early if it returns false.
   */
  readonly recover: (
    inbox: InboxRef,
    range: { readonly sinceMs: number; readonly cursor?: string | undefined; readonly mayGoOn?: () => boolean },
  ) => Promise<
    | {
        readonly answer: 'OK';
        readonly recovered: number;
        readonly replayRequired: number;
        readonly cursor: string | undefined;
      }
    | { readonly answer: Refused | 'BAD_CURSOR' }
  >;
  /**
   * Sends a test event to the endpoint, with a single attempt that is signed and recorded as usual. HELD: it is not
   * possible to call the endpoint. PULLED: the subscription does not have an endpoint. MANY: there are too many open
   * test events.
   *
   * @param once only a single event is sent for this text within 24 hours. After that, the ref of the first event is
   * returned
   */
  readonly sendTest: (
    inbox: InboxRef,
    once?: string,
  ) => Promise<
    { readonly answer: 'OK'; readonly ref: string } | { readonly answer: Refused | 'HELD' | 'PULLED' | 'MANY' }
  >;
}
