import { BlockList, isIP } from 'node:net';
import { isPlainAddress, type Mailbox } from './address.ts';

/** A mail server, along with credentials. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** If true, TLS is used from the start. If false, STARTTLS is used. */
  readonly secure: boolean;
  readonly credentials?: { readonly user: string; readonly password: string };
}

const DEFAULT_PORT = { 'smtp:': 587, 'smtps:': 465 } as const;

/**
 * Parses `smtp://[user:password@]host[:port]` or `smtps://…`, percent-decoding user and password.
 *
 * @throws TypeError for anything else. The message must not contain the text, because it may include a password
 */
export function parseSmtpUrl(text: string): SmtpServer {
  const url = URL.parse(text);
  const protocol = url?.protocol;
  if (url === null || (protocol !== 'smtp:' && protocol !== 'smtps:')) throw new TypeError('not a valid smtp URL');
  if (url.hostname === '' || !['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new TypeError('the smtp URL must only contain a server');
  }
  let credentials: SmtpServer['credentials'];
  try {
    const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    if (user !== '') credentials = { user, password };
  } catch {
    throw new TypeError('the user and the password must be percent-encoded');
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? DEFAULT_PORT[protocol] : Number(url.port),
    secure: protocol === 'smtps:',
    ...(credentials === undefined ? {} : { credentials }),
  };
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Returns true if the server is running on this machine. In this case, the connection does not use the network. */
export function isLoopback({ host }: Pick<SmtpServer, 'host'>): boolean {
  const family = isIP(host);
  return family === 0 ? host.toLowerCase() === 'localhost' : LOOPBACK.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/** Returns the default sender: `sluice@` followed by the server's host name, if it is valid in an address. */
export function defaultSender({ host }: SmtpServer): Mailbox {
  const address = `sluice@${host}`;
  return { name: '', address: isIP(host) === 0 && isPlainAddress(address) ? address : 'sluice@localhost' };
}
