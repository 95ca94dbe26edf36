import type { Permission } from './inbox-reader.ts';
import type { InboxRef } from './inbox-ref.ts';

type Refused = Exclude<Permission, 'OPEN' | 'INACTIVE'>;

/** Operations after an outage of an endpoint: send a test event, and recover failed events. Both are free. */
export interface InboxRecovery {
  /**
   * Makes failed deliveries of events accepted since `sinceMs` due immediately, both deliveries waiting for a retry and
   * dead letters, which get a full retry schedule again. Keeps the order. This is not a replay and is free, which is why
   * each dead letter is recovered once only, and dead replays aren't recovered. `replayRequired` is the number of those
   * that were left unchanged. Processes 20,000 deliveries per call. Repeat with the returned cursor until there is none.
   * `mayGoOn` is asked after each 1,000 deliveries. The call ends early if it returns false.
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
   * Sends a test event to the endpoint, with a single attempt that is signed and recorded as usual. HELD: the endpoint
   * can't be called. PULLED: there is no endpoint. MANY: too many test events are open.
   *
   * @param once sends one event for this text within 24 hours, and otherwise returns the ref of the first one
   */
  readonly sendTest: (
    inbox: InboxRef,
    once?: string,
  ) => Promise<
    { readonly answer: 'OK'; readonly ref: string } | { readonly answer: Refused | 'HELD' | 'PULLED' | 'MANY' }
  >;
}
