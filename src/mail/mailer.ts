import { Readable } from 'node:stream';
import { hashInvitationToken } from '../core/ids/invitation.ts';
import { isPlainAddress, type Mailbox } from './address.ts';
import { type InvitationMail, writeInvitation } from './invitation-message.ts';
import { isLoopback, type SmtpServer } from './smtp-url.ts';

/**
 * Thrown for an email that the server didn't accept. Doesn't contain any address or token. The server response is
 * omitted as well because it often contains the address.
 */
export class MailError extends Error {
  override readonly name = 'MailError';
  /** SMTP reply code (`550`), or an error code (`ECONNECTION`, `ETIMEDOUT`, …). */
  readonly code: string;
  /** True if the server has permanently rejected this recipient or message. */
  readonly refused: boolean;
  /**
   * True if it is certain that the attempt failed before the recipient was submitted to the server. If false, the
   * server may have tried the address or accepted the email.
   */
  readonly unsent: boolean;

  constructor(code: string, refused: boolean, unsent = refused) {
    super(`the mail server did not accept the email: ${code}`);
    this.code = code;
    this.refused = refused;
    this.unsent = unsent;
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
  /** URL of the page where an invitation's token can be accepted. */
  readonly acceptUrl: string | undefined;
  /** If true, allows `smtp://` without TLS if a server on another machine doesn't support it. Defaults to false. */
  readonly plainText?: boolean;
  /** The timeout for each step before the first command, in milliseconds. Defaults to 10,000. */
  readonly stepTimeoutMs?: number;
  /** The timeout for the conversation up to the message, in milliseconds. Defaults to 60,000. */
  readonly timeoutMs?: number;
  /** The time in which the server must accept the message, in milliseconds. Defaults to 10 minutes. */
  readonly acceptTimeoutMs?: number;
}

/**
 * A server may check the message before it responds. If we didn't wait for this time (RFC 5321, 4.5.3.2.6), we would
 * send the email again although the server has accepted it.
 */
const ACCEPT_TIMEOUT_MS = 10 * 60 * 1_000;

/**
 * Creates a mailer, which opens a new connection for each email. We don't reuse connections because invitations are
 * rare.
 */
export function createInvitationMailer(options: MailerOptions): SendInvitation {
  const { from, acceptUrl, timeoutMs = 60_000, acceptTimeoutMs = ACCEPT_TIMEOUT_MS } = options;
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);

  return async (mail, signal) => {
    // All other addresses are rejected by the CRD. A line break in an address could be used to add headers.
    if (!isPlainAddress(mail.to)) throw new MailError('EENVELOPE', true);
    const { subject, text } = writeInvitation(mail, acceptUrl);
    const deadline = new AbortController();
    const expire = () => deadline.abort();
    let timer = setTimeout(expire, timeoutMs);
    const onMessage = () => {
      clearTimeout(timer);
      timer = setTimeout(expire, acceptTimeoutMs);
    };
    try {
      const transport = await openTransport(options, acceptTimeoutMs, onMessage);
      await transport.sendMail({
        from,
        to: { name: '', address: mail.to },
        envelope: { from: from.address, to: [mail.to] },
        subject,
        text,
        // Use a stable id so that most email clients will only show one email if we resend it after a crash.
        messageId: `<invitation.${hashInvitationToken(mail.token).slice(0, 32)}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal]),
      });
    } catch (error) {
      throw deadline.signal.aborted ? new MailError('ETIMEDOUT', false) : toMailError(error);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** @param onMessage called when the server is ready to receive the message */
async function openTransport(
  { server, plainText = false, stepTimeoutMs = 10_000 }: MailerOptions,
  socketTimeout: number,
  onMessage: () => void,
) {
  const { host, port, secure, credentials } = server;
  // Loaded for the first email, because many installations don't send any emails.
  const { default: nodemailer } = await import('nodemailer');
  const transport = nodemailer.createTransport({
    host,
    port,
    secure,
    // Require TLS, so that an attacker on the network can't turn it off and read the password and the token.
    requireTLS: !secure && !plainText && !isLoopback(server),
    ...(credentials === undefined ? {} : { auth: { user: credentials.user, pass: credentials.password } }),
    connectionTimeout: stepTimeoutMs,
    greetingTimeout: stepTimeoutMs,
    socketTimeout,
    dnsTimeout: stepTimeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  transport.use('stream', ({ message }, done) => {
    message.processFunc(content => Readable.from(tellOnRead(content, onMessage)));
    done(null);
  });
  return transport;
}

/** Nothing is read before the server has responded to `DATA`. */
async function* tellOnRead(content: Readable, onRead: () => void) {
  onRead();
  yield* content;
}

/** Error codes that only occur before the recipient is submitted to the server. */
const BEFORE_RECIPIENT: readonly string[] = ['EDNS', 'EAUTH'];
/** Commands before the recipient. `API` is an error of the call before the first command. */
const COMMANDS_BEFORE_RECIPIENT: readonly unknown[] = ['API', 'EHLO', 'HELO', 'STARTTLS', 'MAIL FROM'];

/** Returns true if it is certain that the recipient was not submitted to the server. */
function isBeforeRecipient(word: string, { syscall, command, message }: SmtpFault): boolean {
  if (syscall === 'connect' || BEFORE_RECIPIENT.includes(word) || COMMANDS_BEFORE_RECIPIENT.includes(command))
    return true;
  // Connection errors always have the `CONN` command, so this error can only be recognized by its message.
  return word === 'EPROTOCOL' && typeof message === 'string' && message.startsWith('Invalid greeting');
}

/** The properties used from a nodemailer error. */
interface SmtpFault {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly command?: unknown;
  readonly message?: unknown;
  readonly responseCode?: unknown;
  readonly permanent?: unknown;
}

/**
 * Converts an error without its cause, because loggers print causes, and servers include addresses in their responses.
 */
function toMailError(error: unknown): MailError {
  const fault = error as SmtpFault;
  const { code, responseCode, permanent } = fault;
  const word = typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,31}$/.test(code) ? code : 'EUNKNOWN';
  const reply = typeof responseCode === 'number' && responseCode >= 400 ? `${responseCode}` : undefined;
  // In case of STARTTLS, the error code is more helpful than the server's response.
  if (word === 'ETLS') return new MailError(word, false, true);
  // A rejected login affects all emails. Only the operator can resolve this.
  const refused = permanent === true && (word === 'EENVELOPE' || word === 'EMESSAGE');
  return new MailError(reply ?? word, refused, isBeforeRecipient(word, fault));
}
