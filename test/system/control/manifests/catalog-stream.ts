import { casesOf } from './case.ts';
import { unusableNames, usableNames } from './display-names.ts';

const { accepts, refuses, acceptsChange, refusesChange } = casesOf('CatalogStream', {});

export const catalogStreamCases = [
  accepts('an empty spec', {}),
  accepts('every field', {
    name: 'Orders, 注文 & more',
    description: 'What was ordered.',
    eventTypes: ['order.created', 'order.cancelled'],
    payloadSchema: '{"type": "object"}',
    public: true,
    contextHeaders: { eventType: ['X-Type'], groupKey: ['x-customer'], eventId: [], forward: ['x-region'] },
    retention: '720h',
    deletionPolicy: 'Delete',
  }),
  accepts('the same event type twice: duplicates are ignored, not refused', { eventTypes: ['a', 'a'] }),
  accepts('an empty list of event types', { eventTypes: [] }),
  accepts('a name of 128 characters outside of the BMP', { name: '🦊'.repeat(128) }),
  refuses('a name of 129 characters outside of the BMP', { name: '🦊'.repeat(129) }, 'spec.name: Too long'),
  refuses('an empty name', { name: '' }, 'spec.name'),
  ...unusableNames.map(([what, name, why]) => refuses(`a name with ${what}`, { name }, why)),
  ...usableNames.map(name => accepts(`the name ${name}`, { name })),
  refuses('a description of 1,025 characters', { description: 'x'.repeat(1025) }, 'spec.description: Too long'),
  refuses('an event type with a space', { eventTypes: ['order created'] }, 'without spaces, such as order.created'),
  refuses(
    '257 event types',
    { eventTypes: Array.from({ length: 257 }, (_, i) => `t${i}`) },
    'spec.eventTypes: Too many: 257: must have at most 256 items',
  ),
  accepts('a payload schema of 128 KiB', { payloadSchema: 'x'.repeat(131_072) }),
  refuses('a payload schema of one byte more', { payloadSchema: 'x'.repeat(131_073) }, 'spec.payloadSchema: Too long'),
  refuses(
    'a payload schema whose characters fit and whose bytes do not',
    { payloadSchema: 'é'.repeat(70_000) },
    'must be at most 131072 bytes (128 KiB) of UTF-8',
  ),
  accepts('a retention in several units', { retention: '1h30m' }),
  refuses('a retention below an hour', { retention: '59m59s' }, 'must be from 1h to 720h'),
  refuses('a retention above 30 days', { retention: '721h' }, 'must be from 1h to 720h'),
  refuses('a retention in days', { retention: '7d' }, 'not in days'),
  refuses(
    'a retention in fractions',
    { retention: '1.5h' },
    'spec.retention: Invalid value: "1.5h": must be a duration such as 5s, 30m or 168h',
  ),
  refuses(
    'forwarding the ingress key to partners',
    { contextHeaders: { forward: ['X-Api-Key'] } },
    'must not name credentials or a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  ),
  refuses(
    'forwarding a signature',
    { contextHeaders: { forward: ['Webhook-Signature'] } },
    'must not name credentials or a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  ),
  refuses(
    'credentials as a group key',
    { contextHeaders: { groupKey: ['x-customer', 'Authorization'] } },
    'must not name credentials or a header of the connection, which ingress never reads',
  ),
  refuses(
    'a header of the connection as an event id',
    { contextHeaders: { eventId: ['content-length'] } },
    'must not name credentials or a header of the connection, which ingress never reads',
  ),
  refuses(
    'an ingress key as an event type',
    { contextHeaders: { eventType: ['X-Api-Key'] } },
    'must not name credentials or a header of the connection, which ingress never reads',
  ),
  accepts('headers that ingress reads but does not forward', {
    contextHeaders: { eventType: ['content-type'], groupKey: ['user-agent'], eventId: ['ce-id', 'x-sluice-id'] },
  }),
  refuses(
    'a header name with a line break',
    { contextHeaders: { groupKey: ['x-key\r\nx: y'] } },
    'must be a header name such as x-api-key',
  ),
  refuses('a policy that does not exist', { deletionPolicy: 'Purge' }, 'supported values: "Retain", "Delete"'),
  refuses('a string for a boolean', { public: 'yes' }, 'spec.public'),
  refuses('a field with a typo', { eventType: ['a'] }, 'unknown field "spec.eventType"', { serverOnly: true }),
  refuses('a name of 64 characters', {}, 'metadata.name must be a DNS label', {
    name: 'x'.repeat(64),
    serverOnly: true,
  }),
  refuses('a name with a dot', {}, 'metadata.name must be a DNS label', { name: 'a.b', serverOnly: true }),
  acceptsChange('setting a name later', {}, { name: 'Orders' }),
  refusesChange(
    'changing the name',
    { name: 'Orders' },
    { name: 'Sales' },
    'spec.name: Invalid value: name is immutable after it is set',
  ),
  refusesChange(
    'removing the name in order to set another one later',
    { name: 'Orders' },
    {},
    'name is immutable after it is set',
  ),
  acceptsChange('publishing, and un-publishing', { public: true }, { public: false }),
];
