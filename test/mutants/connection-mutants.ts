import { type Mutant, mutantsOf } from './mutant.ts';

const FACADE = 'src/facade/';

/** Mutants of the HTTP connections of servers and of dispatchers. */
export const CONNECTION_MUTANTS: readonly Mutant[] = [
  ...mutantsOf('src/dataplane/dispatcher/http/answer-reader.ts', [
    ['a response can have two lengths', 'head.length !== undefined || ', ''],
    ['101 is skipped like other informational responses', 'if (status < 100 || status === 101)', 'if (status < 100)'],
    ['a connection with surplus data is reused', 'hasSurplus = at < bytes.length;', 'hasSurplus = false;'],
    ['a header can have any name', 'if (match === null) return false;', 'if (match === null) return true;'],
    ['the size of a response is not limited', 'if (wireBytes > WIRE_MAX)', 'if (wireBytes < 0)'],
  ]),
  {
    name: '100 is refused',
    file: 'src/dataplane/dispatcher/http/answer-reader.ts',
    from: 'if (status < 100 || status === 101)',
    to: 'if (status <= 101)',
    test: 'src/dataplane/dispatcher/endpoint-client-answers.test.ts',
  },
  ...mutantsOf('src/dataplane/dispatcher/http/connection.ts', [
    [
      'an unexpected response is accepted',
      "if (current === undefined) return fail('invalid_response');",
      'if (!current) return;',
    ],
  ]),
  {
    name: 'a connection that was closed after a response is reused',
    file: 'src/dataplane/dispatcher/http/connection.ts',
    from: 'setImmediate(end);',
    to: 'end();',
    test: 'src/dataplane/dispatcher/endpoint-client-tls.test.ts',
  },
  {
    name: 'while draining, a request is processed behind the last response',
    file: 'src/http/last-responses.ts',
    from: 'latest.req === request || !latest.headersSent',
    to: 'latest.req === request',
    test: 'src/http/last-responses.test.ts',
  },
  {
    name: 'while draining, a request gets no response because of one sent before',
    file: 'src/http/last-responses.ts',
    from: 'if (latest.req === request || !latest.headersSent) connection',
    to: 'connection',
    test: 'src/http/last-responses.test.ts',
  },
  {
    name: 'a connection with an incomplete request is reused',
    file: 'src/dataplane/dispatcher/http/connection.ts',
    from: '(socket?.writableLength ?? 0) > 0',
    to: 'false',
    test: 'src/dataplane/dispatcher/endpoint-client-answers.test.ts',
  },
  ...mutantsOf('src/http/connections/connection-limit.ts', [
    [
      'an address has any number of connections',
      'if (address !== undefined && !ofAddresses.enter(address)) {',
      'if (address !== undefined && ofAddresses.enter(address) === undefined) {',
      `${FACADE}contract/rate-limit.test.ts`,
    ],
    [
      'the connections of a proxy count for an address',
      'const address = connectionOf?.(socket);',
      "const address = connectionOf?.(socket) ?? '';",
      `${FACADE}contract/rate-limit.test.ts`,
    ],
    [
      'a server has any number of connections',
      'places.size >= total',
      'places.size < 0',
      'src/http/connections/connection-limit.test.ts',
    ],
    [
      'a request in progress is closed for a new connection',
      'if (isProcessed(place)) continue;\n',
      '',
      'src/http/connections/connection-limit.test.ts',
    ],
    [
      'a request with a slow client is never closed',
      'isAwaited ||= response.req.complete && !response.writableEnded;',
      'isAwaited ||= !response.writableEnded;',
      'src/http/connections/connection-limit.test.ts',
    ],
    [
      'the oldest connection is closed even if it was used recently',
      'if (places.delete(place.socket)) places.set(place.socket, place);',
      'if (!places.has(place.socket)) return;',
      'src/http/connections/connection-limit.test.ts',
    ],
    [
      'the use of a TLS connection is not recorded',
      "socket['_parent'] ?? socket",
      'socket',
      'src/dataplane/ingress/pressure.test.ts',
    ],
  ]),
  ...mutantsOf('src/http/connections/arrivals.ts', [
    [
      'a call starts before connections that have arrived',
      'accepted === seen || nowMs() >= untilMs',
      'true',
      'src/http/connections/arrivals.test.ts',
    ],
    ['connections delay calls without a limit', ' || nowMs() >= untilMs', '', 'src/http/connections/arrivals.test.ts'],
  ]),
  ...mutantsOf(`${FACADE}contract/pipelines.ts`, [
    [
      'any number of requests of a connection can wait',
      'waiting.requests > MOST_PIPELINED || ',
      '',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'requests of a connection start at the same time',
      'if (response.socket !== null) return start();',
      'if (response !== null) return start();',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'requests that have started still count as waiting',
      'waiting.requests--;',
      '',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'a connection is closed one request too early',
      'waiting.requests > MOST_PIPELINED',
      'waiting.requests >= MOST_PIPELINED',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'the headers of waiting requests can have any size',
      ' || waiting.characters > MOST_PIPELINED_CHARACTERS',
      '',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'the headers of requests that have started still count',
      'waiting.characters -= characters;',
      '',
      `${FACADE}contract/pipelines.test.ts`,
    ],
  ]),
  ...mutantsOf('src/http/protocol-errors.ts', [
    [
      'an invalid request is refused before the responses to earlier requests',
      'if (owesEarlier) {',
      'if (owesEarlier && false) {',
      'src/http/pipelining.test.ts',
    ],
  ]),
  ...mutantsOf('src/http/connections/closed-connections.ts', [
    [
      'each closed connection is logged',
      'if (nowMs() < quietUntilMs) return;',
      '',
      'src/http/connections/closed-connections.test.ts',
    ],
  ]),
  ...mutantsOf('src/http/protocol-errors.ts', [
    [
      'a second response is sent after half of one',
      '  if (inProgress?.headersSent) return void socket.destroy();\n',
      '',
      'src/http/protocol-errors.test.ts',
    ],
    [
      'a refused client can send any amount of bytes',
      'socket.bytesRead - before > LINGER_BYTES',
      'false',
      'src/http/protocol-errors.test.ts',
    ],
    [
      'the connection of a refused client is reset',
      'if (lingerMs === 0) return void',
      'return void',
      'src/http/protocol-errors.test.ts',
    ],
  ]),
  ...mutantsOf('src/http/last-responses.ts', [
    [
      'a refused client can hold a connection with an incomplete body',
      '    if (!this.req.complete) linger(this.req);\n',
      '',
      'src/http/last-responses.test.ts',
    ],
  ]),
  ...mutantsOf('src/http/expected-bodies.ts', [
    [
      '100 Continue is sent within a response',
      'if (!response.headersSent) response',
      'response',
      'src/http/expected-bodies.test.ts',
    ],
  ]),
];
