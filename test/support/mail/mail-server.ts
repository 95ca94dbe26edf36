import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export interface ReceivedMail {
  /** The recipient in the envelope. */
  readonly from: string;
  readonly to: readonly string[];
  /** The transmitted message, with lines separated by CRLF. */
  readonly raw: string;
  readonly headers: ReadonlyMap<string, string>;
  /** The message without transport encoding: dots, quoted-printable, CRLF. */
  readonly body: string;
}

export interface MailServer {
  readonly port: number;
  readonly received: readonly ReceivedMail[];
  /**
   * Returns the response to a recipient. Undefined accepts the recipient. The text includes the address, as for real
   * servers.
   */
  readonly refuseWith: (code: number | undefined) => void;
  readonly close: () => Promise<void>;
}

function refusal(code: number, words: string): Error {
  return Object.assign(new Error(words), { responseCode: code });
}

function parseMail(raw: string): Pick<ReceivedMail, 'headers' | 'body'> {
  const end = raw.indexOf('\r\n\r\n');
  const lines = raw
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n');
  const headers = new Map(
    lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const encoded = raw.slice(end + 4).replaceAll('\r\n', '\n');
  const body =
    headers.get('content-transfer-encoding') === 'quoted-printable'
      ? encoded
          .replaceAll('=\n', '')
          .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      : encoded;
  return { headers, body };
}

/**
 * Starts a real SMTP server on 127.0.0.1 that stores accepted emails.
 * @param options.port defaults to 0, which picks a free port
 * @param options.login required credentials. By default, none are required
 */
export async function startMailServer(
  options: {
    readonly port?: number;
    readonly login?: { readonly user: string; readonly password: string };
    readonly more?: SMTPServerOptions;
  } = {},
): Promise<MailServer> {
  const { login } = options;
  const received: ReceivedMail[] = [];
  let code: number | undefined;
  const server = new SMTPServer({
    authOptional: login === undefined,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    closeTimeout: 100,
    onAuth: ({ username, password }, _session, answer) => {
      if (username === login?.user && password === login?.password) answer(null, { user: username });
      else answer(refusal(535, `no such login: ${username}`));
    },
    onRcptTo: ({ address }, _session, answer) => {
      if (code === undefined) answer();
      else answer(refusal(code, `not for ${address}`));
    },
    onData: (stream, { envelope }, answer) => {
      text(stream).then(raw => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        received.push({ from, to: envelope.rcptTo.map(({ address }) => address), raw, ...parseMail(raw) });
        answer();
      }, answer);
    },
    ...options.more,
  });
  // A client that disconnects does not fail a test.
  server.on('error', () => {});
  await new Promise<void>(resolve => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    refuseWith: next => {
      code = next;
    },
    close: () => new Promise<void>(resolve => server.close(() => resolve())),
  };
}
