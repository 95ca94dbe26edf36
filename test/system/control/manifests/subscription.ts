import { casesOf } from './case.ts';

const { accepts, refuses, acceptsChange, refusesChange } = casesOf('Subscription', {
  producer: 'acme',
  integration: 'globex',
  stream: 'orders',
});

const url = 'https://hooks.globex.example/orders';
const URL_MESSAGE =
  'must be an absolute URL in ASCII that starts with http:// or https://, without a user name or password and with a port of at most 65535';

const endpoint = (fields: object) => ({ endpoint: { url, ...fields } });

export const subscriptionCases = [
  accepts('pull only', {}),
  accepts('every field', {
    ordering: 'None',
    suspended: true,
    deletionPolicy: 'Delete',
    ...endpoint({
      timeoutSeconds: 30,
      maxPerSecond: 10_000,
      retrySchedule: ['500ms', '5s', '1h30m'],
      headers: [
        { name: 'Authorization', valueFrom: { secretKeyRef: { name: 'orders-endpoint', key: 'authorization' } } },
        { name: 'x-team', value: 'orders' },
        { name: 'x-token', valueSealed: 's2.AAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
      ],
      secretVersion: 2,
      enabledAt: '2026-01-31T12:00:00Z',
    }),
  }),
  accepts('http towards an address', { endpoint: { url: 'http://127.0.0.1:9797/hooks/orders?a=b%20c' } }),
  accepts('an IPv6 address', { endpoint: { url: 'https://[2001:db8::1]:8443' } }),
  accepts('an empty retry schedule: one attempt', endpoint({ retrySchedule: [] })),
  refuses('an endpoint without a URL', { endpoint: {} }, 'spec.endpoint.url: Required value'),
  refuses('a URL of another scheme', { endpoint: { url: 'ftp://globex.example/' } }, URL_MESSAGE),
  refuses('a URL with user info', { endpoint: { url: 'https://ada:secret@globex.example/' } }, URL_MESSAGE),
  refuses(
    'a URL whose user info hides behind a backslash',
    { endpoint: { url: 'https://a\\@globex.example' } },
    URL_MESSAGE,
  ),
  refuses('a URL without a host', { endpoint: { url: 'https:///orders' } }, URL_MESSAGE),
  refuses('a URL with a port that cannot be', { endpoint: { url: 'https://globex.example:65536/' } }, URL_MESSAGE),
  refuses('a URL with a line break', { endpoint: { url: 'https://globex.example/a\nb' } }, URL_MESSAGE),
  refuses('a URL of 2,049 characters', { endpoint: { url: url.padEnd(2049, 'x') } }, 'spec.endpoint.url: Too long'),
  refuses('a timeout of 31 seconds', endpoint({ timeoutSeconds: 31 }), 'should be less than or equal to 30'),
  refuses('a timeout of 0 seconds', endpoint({ timeoutSeconds: 0 }), 'should be greater than or equal to 1'),
  refuses('10,001 a second', endpoint({ maxPerSecond: 10_001 }), 'should be less than or equal to 10000'),
  refuses(
    '17 retries',
    endpoint({ retrySchedule: Array.from({ length: 17 }, () => '5s') }),
    'must have at most 16 items',
  ),
  refuses(
    'a retry without a unit',
    endpoint({ retrySchedule: ['5'] }),
    'spec.endpoint.retrySchedule[0]: Invalid value: "',
  ),
  refuses(
    'a header with a value and a Secret',
    endpoint({ headers: [{ name: 'x-a', value: 'b', valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }] }),
    'must have exactly one of value, valueSealed, and valueFrom',
  ),
  refuses(
    'a header without a value',
    endpoint({ headers: [{ name: 'x-a' }] }),
    'must have exactly one of value, valueSealed, and valueFrom',
  ),
  refuses(
    'a header with a value and a sealed value',
    endpoint({ headers: [{ name: 'x-a', value: 'b', valueSealed: 's2.AAAAAAAAAA.AAAA' }] }),
    'must have exactly one of value, valueSealed, and valueFrom',
  ),
  refuses(
    'a sealed value of another form',
    endpoint({ headers: [{ name: 'x-a', valueSealed: 'Bearer token' }] }),
    'must be a value encrypted by the REST API, which starts with "s2."',
  ),
  refuses(
    'a header that forges the signature',
    endpoint({ headers: [{ name: 'Webhook-Signature', value: 'v1,x' }] }),
    'must not name a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  ),
  refuses(
    'a header that a delivery states about itself',
    endpoint({ headers: [{ name: 'CE-Source', value: '/mine' }] }),
    'must not name a header that Sluice sets',
  ),
  refuses(
    'a header that would split the request',
    endpoint({ headers: [{ name: 'x-a', value: 'b\r\nx-c: d' }] }),
    'must consist of visible ASCII characters, spaces, and tabs',
  ),
  ...(['name', 'key'] as const).map(field =>
    refuses(
      `a Secret whose ${field} has a space`,
      endpoint({
        headers: [{ name: 'x-a', valueFrom: { secretKeyRef: { name: 'a', key: 'a', [field]: 'my token' } } }],
      }),
      field === 'name' ? 'such as api-token' : 'such as token',
    ),
  ),
  refuses('a secret version of 0', endpoint({ secretVersion: 0 }), 'should be greater than or equal to 1'),
  refuses('an invalid time', endpoint({ enabledAt: 'now' }), 'spec.endpoint.enabledAt'),
  refuses('an offset of a day', endpoint({ enabledAt: '2026-01-31T12:00:00+24:00' }), 'spec.endpoint.enabledAt'),
  refuses('another ordering', { ordering: 'Total' }, 'supported values: "ByGroupKey", "None"'),
  refusesChange('another producer', {}, { producer: 'initech' }, 'producer is immutable'),
  refusesChange('another integration', {}, { integration: 'initech' }, 'integration is immutable'),
  refusesChange('another stream', {}, { stream: 'returns' }, 'stream is immutable'),
  refusesChange('another ordering later', {}, { ordering: 'None' }, 'ordering is immutable'),
  acceptsChange('rotating the secret', endpoint({}), endpoint({ secretVersion: 2 })),
  acceptsChange('giving the endpoint up, to pull', endpoint({ secretVersion: 2 }), {}),
  refusesChange(
    'an older secret',
    endpoint({ secretVersion: 3 }),
    endpoint({ secretVersion: 2 }),
    'secretVersion cannot be decreased because an older secret might have been exposed: set it to the previous value',
  ),
  refusesChange(
    'the first secret again',
    endpoint({ secretVersion: 3 }),
    endpoint({}),
    'secretVersion cannot be decreased',
  ),
  refusesChange(
    'an older secret, after removing the endpoint',
    {},
    endpoint({ secretVersion: 2 }),
    'set it to the value of status.signing.version or to a higher one',
    { signing: { version: 3 } },
  ),
];
