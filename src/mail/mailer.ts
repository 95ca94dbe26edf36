import nodemailer from 'nodemailer';
import { hashInvitationToken } from '../core/ids/invitation.ts';
import { isPlainAddress, type Mailbox } from './address.ts';
import { type InvitationMail, writeInvitation } from './invitation-message.ts';
import { isLoopback, type SmtpServer } from './smtp-url.ts';

/**
 * A mail that was not taken. Neither message nor properties hold an address, a token or the server's own words, which
 * often repeat the address.
 */
export class MailError extends Error {
  override readonly name = 'MailError';
  /** The SMTP reply (`550`), or what happened instead of one (`ECONNECTION`, `ETIMEDOUT`, …). */
  readonly code: string;
  /** The server refused this recipient or this message: the same again is refused again. */
  readonly refused: boolean;

  constructor(code: string, refused: boolean) {
    super(`the mail was not taken: ${code}`);
    this.code = code;
    this.refused = refused;
  }
}

/**
 * Mails an invitation; resolves when the server has taken it.
 *
 * @param signal ends the attempt
 * @throws MailError
 */
export type SendInvitation = (mail: InvitationMail, signal?: AbortSignal) => Promise<void>;

export interface MailerOptions {
  readonly server: SmtpServer;
  readonly from: Mailbox;
  /** Page that takes the token of an invitation. */
  readonly acceptUrl: string | undefined;
  /** Whether `smtp://` goes on without TLS where none is offered, by a server that is not on this machine. Default: false. */
  readonly plainText?: boolean;
  /** For each step of the conversation, ms. Default 10,000. */
  readonly stepTimeoutMs?: number;
  /** For all of it, ms: a server may be slow in many small steps. Default 60,000. */
  readonly timeoutMs?: number;
}

/** Opens a connection for each mail: invitations are rare, and none is left half open. */
export function createInvitationMailer(options: MailerOptions): SendInvitation {
  const { server, from, acceptUrl, plainText = false, stepTimeoutMs = 10_000, timeoutMs = 60_000 } = options;
  const { host, port, secure, credentials } = server;
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);
  const transport = nodemailer.createTransport({
    host,
    port,
    secure,
    // Otherwise whoever stands in between removes the offer, and reads the password and the token.
    requireTLS: !secure && !plainText && !isLoopback(server),
    ...(credentials === undefined ? {} : { auth: { user: credentials.user, pass: credentials.password } }),
    connectionTimeout: stepTimeoutMs,
    greetingTimeout: stepTimeoutMs,
    socketTimeout: stepTimeoutMs,
    dnsTimeout: stepTimeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });

  return async (mail, signal) => {
    // The CRD lets nothing else through; a line break here would write headers of its own.
    if (!isPlainAddress(mail.to)) throw new MailError('EENVELOPE', true);
    const { subject, text } = writeInvitation(mail, acceptUrl);
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      await transport.sendMail({
        from,
        to: { name: '', address: mail.to },
        envelope: { from: from.address, to: [mail.to] },
        subject,
        text,
        // The same when it is sent again after a crash: most mailboxes show such a pair once.
        messageId: `<invitation.${hashInvitationToken(mail.token).slice(0, 32)}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      });
    } catch (error) {
      throw deadline.aborted ? new MailError('ETIMEDOUT', false) : toMailError(error);
    }
  };
}

/** The original is no cause of it: loggers print causes, and servers repeat addresses in their answers. */
function toMailError(error: unknown): MailError {
  const { code, responseCode, permanent } = error as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
    readonly permanent?: unknown;
  };
  const word = typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,31}$/.test(code) ? code : 'EUNKNOWN';
  const reply = typeof responseCode === 'number' && responseCode >= 400 ? `${responseCode}` : undefined;
  // The server's reply to STARTTLS says less.
  if (word === 'ETLS') return new MailError(word, false);
  // Not so when signing in was refused: that is the operator's to mend, and concerns every mail.
  const refused = permanent === true && (word === 'EENVELOPE' || word === 'EMESSAGE');
  return new MailError(reply ?? word, refused);
}
