import { CONDITION } from '../../../api/condition-reasons.ts';
import type { MailHold } from '../../../record/mail-reader.ts';
import type { Cached } from '../../caches/caches.ts';
import { type Context, timestampOf } from '../../context/context.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Deliveries } from './deliveries.ts';
import type { HeldBack } from './invitation.ts';
import type { MailLimit } from './mail-limit.ts';

const HELD = {
  address: 'AddressLimitReached',
  account: 'AccountLimitReached',
} as const satisfies Record<MailHold['by'], HeldBack['held']>;

/** The time at which the email should be checked again. */
interface Requeue {
  readonly requeueAfterMs: number;
}

interface HeldMailsDeps {
  readonly deliveries: Deliveries;
  readonly mailLimit: Pick<MailLimit, 'known'>;
  /** Enqueues the integration, so that the reason why the email has to wait is shown in its status. */
  readonly onResult: (key: string) => void;
}

/**
 * Creates the functions that are used for emails which have to wait because of a limit. All times are those of the
 * Redis clock.
 */
export function createHeldMails({ nowMs }: Pick<Context, 'nowMs'>, { deliveries, mailLimit, onResult }: HeldMailsDeps) {
  function notedFor(key: string, integration: Cached<'Integration'>, issuedAt: string): HeldBack | undefined {
    const noted = deliveries.of(key, { uid: integration.metadata.uid, issuedAt });
    return noted !== undefined && 'held' in noted ? noted : undefined;
  }

  /**
   * Holds back an email. If this is because of the limit of an account, the status is only written once. There can be
   * many emails that wait for days, and the time changes each time an email is sent.
   */
  function holdBack(key: string, integration: Cached<'Integration'>, issuedAt: string, hold: MailHold): Requeue {
    const held = HELD[hold.by];
    const shown = findCondition(integration.status?.conditions, CONDITION.Integration.InvitationSent)?.reason;
    if (notedFor(key, integration, issuedAt)?.held !== held && (hold.by === 'address' || shown !== held)) {
      const until = timestampOf(Math.ceil(hold.untilMs / 1_000) * 1_000);
      deliveries.note(key, { uid: integration.metadata.uid, issuedAt }, { held, until });
      onResult(key);
    }
    return { requeueAfterMs: Math.max(1_000, hold.untilMs - nowMs()) };
  }

  return {
    holdBack,
    /**
     * Holds an email back that has to wait, if this is known without reading anything. If this is not known, it returns
     * undefined.
     */
    known(key: string, integration: Cached<'Integration'>, issuedAt: string): Requeue | undefined {
      const noted = notedFor(key, integration, issuedAt);
      const untilMs = noted?.held === HELD.address ? Date.parse(noted.until) : 0;
      const hold = untilMs > nowMs() ? ({ by: 'address', untilMs } as const) : mailLimit.known(integration);
      return hold && holdBack(key, integration, issuedAt, hold);
    },
  };
}
