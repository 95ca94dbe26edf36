import nodemailer from 'nodemailer';
import { hashInvitationToken } from '../core/ids/invitation.ts';
import { isPlainAddress, type Mailbox } from './address.ts';
import { type InvitationMail, writeInvitation } from './invitation-message.ts';
import { isLoopback, type SmtpServer } from './smtp-url.ts';

/**
 * A mail that the server did not accept. Neither message nor properties hold an address, a token or the server's text,
 * which often repeats the address.
 */
export class MailError extends Error {
  override readonly name = 'MailError';
  /** The SMTP reply code (`550`), or an error code (`ECONNECTION`, `ETIMEDOUT`, …). */
  readonly code: string;
  /** The server refused this recipient or message, and would refuse it again. */
  readonly refused: boolean;

  constructor(code: string, refused: boolean) {
    super(`the mail server did not accept the mail: ${code}`);
    this.code = code;
    this.refused = refused;
  }
}

/**
 * Mails an invitation; resolves when the server has accepted it.
 *
 * @param signal ends the attempt
 * @throws MailError
 */
export type SendInvitation = (mail: InvitationMail, signal?: AbortSignal) => Promise<void>;

export interface MailerOptions {
  readonly server: SmtpServer;
  readonly from: Mailbox;
  /** URL of the page that accepts the token of an invitation. */
  readonly acceptUrl: string | undefined;
  /** Allow `smtp://` without TLS if a server on another machine does not offer it. Default: false. */
  readonly plainText?: boolean;
  /** Timeout of each SMTP step, ms. Default 10,000. */
  readonly stepTimeoutMs?: number;
  /** Timeout of the whole conversation, ms: a server may be slow in many small steps. Default 60,000. */
  readonly timeoutMs?: number;
}

/** Creates a mailer that opens a connection for each mail: invitations are rare, and no connection stays half open. */
export function createInvitationMailer(options: MailerOptions): SendInvitation {
  const { server, from, acceptUrl, plainText = false, stepTimeoutMs = 10_000, timeoutMs = 60_000 } = options;
  const { host, port, secure, credentials } = server;
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);
  const transport = nodemailer.createTransport({
    host,
    port,
    secure,
    // Otherwise a man in the middle could remove the offer of TLS, and read the password and the token.
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
    // The CRD refuses other addresses. A line break here would add headers.
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
        // Stable, so that a mail that is sent again after a crash is shown once by most mailboxes.
        messageId: `<invitation.${hashInvitationToken(mail.token).slice(0, 32)}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      });
    } catch (error) {
      throw deadline.aborted ? new MailError('ETIMEDOUT', false) : toMailError(error);
    }
  };
}

/** Converts an error, without its cause: loggers print causes, and servers repeat addresses in their replies. */
function toMailError(error: unknown): MailError {
  const { code, responseCode, permanent } = error as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
    readonly permanent?: unknown;
  };
  const word = typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,31}$/.test(code) ? code : 'EUNKNOWN';
  const reply = typeof responseCode === 'number' && responseCode >= 400 ? `${responseCode}` : undefined;
  // For STARTTLS the error code is more useful than the server's reply.
  if (word === 'ETLS') return new MailError(word, false);
  // A refused login is not a refusal of this mail: the operator must fix it, and it affects every mail.
  const refused = permanent === true && (word === 'EENVELOPE' || word === 'EMESSAGE');
  return new MailError(reply ?? word, refused);
}
