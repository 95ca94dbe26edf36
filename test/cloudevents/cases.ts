import type { Described } from './peers.ts';

/** An event that every SDK can send and read. */
export interface Case {
  readonly what: string;
  readonly event: Omit<Described, 'attributes'> & { readonly attributes: Readonly<Record<string, string>> };
  /**
   * Set to false if the attributes do not have the same meaning in every SDK. In binary mode, the SDKs for JavaScript
   * and Go neither encode nor decode headers. In this case, the test only compares the received event with the event
   * without Sluice.
   */
  readonly plain?: false;
}

const REQUIRED = { source: '/shop/1', type: 'com.example.order.created' };
const JSON_TYPE = { datacontenttype: 'application/json' };
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

export const CASES: readonly Case[] = [
  { what: 'the required attributes alone', event: { attributes: REQUIRED } },
  {
    what: 'every attribute, and a JSON object',
    event: {
      attributes: {
        ...REQUIRED,
        ...JSON_TYPE,
        subject: 'parcel/7',
        time: '2026-01-31T12:00:00.123Z',
        dataschema: 'https://schemas.example.com/order?v=1#created',
      },
      data: { json: { order: 1, lines: [{ id: 'a', price: 1.5 }, null, true], empty: {} } },
    },
  },
  {
    what: 'extensions of each type',
    event: {
      attributes: REQUIRED,
      extensions: {
        astring: { type: 'string', value: 'text;and,some=(marks)' },
        aboolean: { type: 'boolean', value: true },
        notso: { type: 'boolean', value: false },
        aninteger: { type: 'integer', value: 2_147_483_647 },
        negative: { type: 'integer', value: -2_147_483_648 },
        somebytes: { type: 'binary', value: Buffer.from([0, 255, 128]).toString('base64') },
        auri: { type: 'uri', value: 'https://example.com/a?b=c#d' },
        areference: { type: 'urireference', value: '../a?b=c' },
        atime: { type: 'timestamp', value: '2026-01-31T12:00:00Z' },
        traceparent: { type: 'string', value: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      },
    },
  },
  {
    what: 'text',
    event: { attributes: { ...REQUIRED, datacontenttype: 'text/plain' }, data: { text: 'line 1\r\nline 2\n' } },
  },
  {
    what: 'XML',
    event: {
      attributes: { ...REQUIRED, datacontenttype: 'application/xml' },
      data: { text: '<?xml version="1.0" encoding="UTF-8"?><order id="1">gr\u00fc\u00dfe</order>' },
    },
  },
  {
    what: 'every byte',
    event: {
      attributes: { ...REQUIRED, datacontenttype: 'application/octet-stream' },
      data: { base64: EVERY_BYTE.toString('base64') },
    },
  },
  { what: 'no data, and a content type', event: { attributes: { ...REQUIRED, ...JSON_TYPE } } },
  {
    what: 'data in UTF-8',
    event: {
      attributes: { ...REQUIRED, datacontenttype: 'text/plain; charset=utf-8' },
      data: { text: 'gr\u00fc\u00dfe \u20ac \u{1F600} \u65e5\u672c' },
    },
  },
  {
    what: 'JSON in UTF-8',
    event: {
      attributes: { ...REQUIRED, ...JSON_TYPE },
      data: { json: { 'gr\u00fc\u00dfe': '\u20ac \u{1F600} \u2028 "quoted" \\' } },
    },
  },
  {
    what: '200 kB',
    event: { attributes: { ...REQUIRED, ...JSON_TYPE }, data: { json: { padding: 'x'.repeat(200_000) } } },
  },
  {
    what: 'attributes in UTF-8',
    plain: false,
    event: {
      attributes: { ...REQUIRED, subject: 'Z\u00fcrich \u20ac \u{1F600}' },
      extensions: { city: { type: 'string', value: '\u6771\u4eac' } },
    },
  },
  {
    what: 'attributes with marks that headers encode',
    plain: false,
    event: {
      attributes: { ...REQUIRED, subject: '100% "sure" %41 a b' },
      extensions: { quoted: { type: 'string', value: '"all of it"' } },
    },
  },
];
