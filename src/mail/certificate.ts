import type { TLSSocket } from 'node:tls';
import type { SmtpServer } from './smtp-url.ts';

const TIMEOUT_MS = 10_000;

/**
 * Connects to a mail server, using STARTTLS if it is needed. Returns the expiry time of its certificate, in
 * milliseconds since 1970. No email is sent. Returns undefined if the server does not use TLS.
 *
 * @throws if the server does not respond, or if its certificate is not accepted
 */
export async function readSmtpCertificateEnd({ host, port, secure }: SmtpServer): Promise<number | undefined> {
  // Only load this if there is a mail server.
  const { default: SMTPConnection } = await import('nodemailer/lib/smtp-connection');
  const connection = new SMTPConnection({
    host,
    port,
    secure,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.once('error', reject);
      connection.connect(error => (error ? reject(error) : resolve()));
    });
    // The types do not contain this field, but it is the only way to access the certificate.
    const { _socket: socket } = connection as unknown as { readonly _socket: Partial<TLSSocket> };
    const end = socket.getPeerCertificate?.().valid_to;
    return end === undefined ? undefined : Date.parse(end);
  } finally {
    connection.on('error', () => {});
    connection.quit();
    connection.close();
  }
}
