import type { TestIssuer } from './issuer.ts';

/** The data used to create bad tokens. */
export interface TokenMaterial {
  /** A configured issuer, RS256. */
  readonly issuer: TestIssuer;
  /** Another running issuer, which is not configured. */
  readonly attacker: TestIssuer;
}

/** The parts of a request, and its permitted statuses. 0 means that the connection was closed. */
export interface BadToken {
  readonly name: string;
  readonly statuses: readonly number[];
  readonly make: (material: TokenMaterial) => Promise<RequestParts> | RequestParts;
}

/** Header lines without line ends (latin1), a query with its question mark, and a form as the body. */
export interface RequestParts {
  readonly headers?: readonly string[];
  readonly query?: string;
  readonly form?: string;
}

export function placed(name: string, statuses: readonly number[], make: BadToken['make']): BadToken {
  return { name, statuses, make };
}

/** Returns the bytes of a request for `target` with these parts. With a form, it is a POST request. */
export function renderRequest(target: string, { headers = [], query = '', form }: RequestParts): Buffer {
  const body =
    form === undefined
      ? []
      : ['Content-Type: application/x-www-form-urlencoded', `Content-Length: ${Buffer.byteLength(form)}`];
  const first = `${form === undefined ? 'GET' : 'POST'} ${target}${query} HTTP/1.1`;
  const head = [first, 'Host: localhost', 'Connection: close', ...headers, ...body].join('\r\n');
  return Buffer.from(`${head}\r\n\r\n${form ?? ''}`, 'latin1');
}
