import nodemailer from 'nodemailer';
import { hashInvitationToken } from '../core/ids/invitation.ts';
import { isPlainAddress, type Mailbox } from './address.ts';
import { type InvitationMail, writeInvitation } from './invitation-message.ts';
import { isLoopback, type SmtpServer } from './smtp-url.ts';

/**
 * An error for an email that the server did not accept. The error does not contain an address, a token or the response
 * of the server, because responses often contain the address.
 */
export class MailError extends Error {
  override readonly name = 'MailError';
  /** The SMTP reply code (`550`), or an error code (`ECONNECTION`, `ETIMEDOUT`, …). */
  readonly code: string;
  /** Whether the server rejected this recipient or message permanently. */
  readonly refused: boolean;

  constructor(code: string, refused: boolean) {
    super(`the mail server did not accept the email: ${code}`);
    this.code = code;
    this.refused = refused;
  }
}

/**
 * Sends an invitation by email and waits until the server has accepted it.
 * @param signal aborts the attempt
 * @throws MailError
 */
export type SendInvitation = (mail: InvitationMail, signal?: AbortSignal) => Promise<void>;

export interface MailerOptions {
  readonly server: SmtpServer;
  readonly from: Mailbox;
  /** The URL of the page that accepts the token of an invitation. */
  readonly acceptUrl: string | undefined;
  /** Allows `smtp://` without TLS if a server on another machine does not support it. Defaults to false. */
  readonly plainText?: boolean;
  /** The timeout of each SMTP step in milliseconds. Defaults to 10,000. */
  readonly stepTimeoutMs?: number;
  /** The timeout of the whole conversation in milliseconds. Defaults to 60,000. */
  readonly timeoutMs?: number;
}

/** Creates a mailer that opens a connection for each email. Invitations are rare, so connections are not reused. */
export function createInvitationMailer(options: MailerOptions): SendInvitation {
  const { server, from, acceptUrl, plainText = false, stepTimeoutMs = 10_000, timeoutMs = 60_000 } = options;
  const { host, port, secure, credentials } = server;
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);
  const transport = nodemailer.createTransport({
    host,
    port,
    secure,
    // Otherwise, an attacker on the network could disable TLS and read the password and the token.
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
    // The CRD rejects other addresses. A line break in an address could add headers to the email.
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
        // The id is stable, so that most email clients show an email only once if it is sent again after a crash.
        messageId: `<invitation.${hashInvitationToken(mail.token).slice(0, 32)}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      });
    } catch (error) {
      throw deadline.aborted ? new MailError('ETIMEDOUT', false) : toMailError(error);
    }
  };
}

/**
 * Converts an error without its cause, because loggers print causes and servers repeat addresses in their responses.
 */
function toMailError(error: unknown): MailError {
  const { code, responseCode, permanent } = error as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
    readonly permanent?: unknown;
  };
  const word = typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,31}$/.test(code) ? code : 'EUNKNOWN';
  const reply = typeof responseCode === 'number' && responseCode >= 400 ? `${responseCode}` : undefined;
  // For STARTTLS, the error code is more helpful than the response of the server.
  if (word === 'ETLS') return new MailError(word, false);
  // A rejected login affects all emails and must be resolved by the operator.
  const refused = permanent === true && (word === 'EENVELOPE' || word === 'EMESSAGE');
  return new MailError(reply ?? word, refused);
}
