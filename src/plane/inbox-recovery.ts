import type { Permission } from './inbox-reader.ts';
import type { InboxRef } from './inbox-ref.ts';

type Refused = Exclude<Permission, 'OPEN' | 'INACTIVE'>;

/** What an integration does when its endpoint was away: try it, and let come again what failed. Both are free. */
export interface InboxRecovery {
  /**
   * Makes failed deliveries of events that were accepted from `sinceMs` on due at once: those that wait for a retry, and
   * dead letters, which have all their retries before them again. In order; no replay, and charged to nobody. Looks at
   * 20,000 a call: to be called again with the cursor while it gives one.
   */
  readonly recover: (
    inbox: InboxRef,
    range: { readonly sinceMs: number; readonly cursor?: string | undefined },
  ) => Promise<
    | { readonly answer: 'OK'; readonly recovered: number; readonly cursor: string | undefined }
    | { readonly answer: Refused | 'BAD_CURSOR' }
  >;
  /**
   * Sends a test event to the endpoint: one attempt, signed and recorded as any other, but no event of the producer.
   * HELD: the endpoint may not be called. PULLED: there is none. MANY: too many are open.
   */
  readonly sendTest: (
    inbox: InboxRef,
  ) => Promise<
    { readonly answer: 'OK'; readonly ref: string } | { readonly answer: Refused | 'HELD' | 'PULLED' | 'MANY' }
  >;
}
