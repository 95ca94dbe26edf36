import { expect, test } from 'vitest';
import { refuseToken } from './challenge.ts';
import { FAULTS, findFault, type TokenFault } from './token-fault.ts';

const NOW = 1_800_000_000;
const rules = {
  issuers: ['https://a.example', 'https://b.example/'],
  audience: 'sluice',
  algorithms: ['RS256', 'ES256'],
  clockToleranceSeconds: 30,
};
const header = { alg: 'RS256', kid: 'k', typ: 'JWT' };
const claims = { iss: 'https://a.example', aud: 'sluice', sub: 'ada', exp: NOW + 60, nbf: NOW, iat: NOW };

test.each<[TokenFault | undefined, object, object?]>([
  [undefined, {}],
  [undefined, {}, { alg: 'ES256' }],
  [undefined, {}, { typ: undefined }],
  [undefined, {}, { typ: 'AT+JWT' }],
  [undefined, { iss: 'https://b.example/' }],
  [undefined, { aud: ['x', 'sluice'] }],
  [undefined, { nbf: undefined, iat: undefined }],
  [undefined, { exp: NOW - 29 }],
  [undefined, { nbf: NOW + 30, iat: NOW + 30 }],
  ['expired', { exp: NOW - 30 }],
  ['expired', { exp: undefined }],
  ['expired', { exp: `${NOW + 60}` }],
  ['expired', { exp: Infinity }],
  ['early', { nbf: NOW + 31 }],
  ['early', { iat: NOW + 31 }],
  ['early', { iat: null }],
  ['issuer', { iss: 'https://b.example' }],
  ['issuer', { iss: 'https://a.example/' }],
  ['issuer', { iss: undefined }],
  ['audience', { aud: 'Sluice' }],
  ['audience', { aud: ['sluice', 1] }],
  ['audience', { aud: undefined }],
  ['bound', { cnf: { jkt: 'x' } }],
  ['bound', { cnf: { 'x5t#S256': 'x' } }],
  ['bound', { cnf: null }],
  ['subject', { sub: '' }],
  ['subject', { sub: 'a\u0085' }],
  ['subject', { sub: '\udc00' }],
  ['type', {}, { typ: 'logout+jwt' }],
  ['critical', {}, { crit: [] }],
  ['algorithm', {}, { alg: 'RS384' }],
  ['algorithm', {}, { alg: 'none' }],
  ['key', {}, { kid: undefined }],
  ['key', {}, { kid: '' }],
])('%s: %j %j', (fault, changedClaims, changedHeader = {}) => {
  const token = { header: { ...header, ...changedHeader }, claims: { ...claims, ...changedClaims } };
  expect(findFault(token, rules, NOW)).toBe(fault);
});

test.each<[TokenFault | undefined, unknown]>([
  [undefined, NOW],
  [undefined, NOW - 630],
  ['old', NOW - 631],
  ['old', undefined],
  ['early', `${NOW}`],
])('with a maximum age of 600 s and 30 s of tolerance, %s: iat %s', (fault, iat) => {
  const token = { header, claims: { ...claims, nbf: undefined, iat } };
  expect(findFault(token, { ...rules, maxAgeSeconds: 600 }, NOW)).toBe(fault);
});

test('the reason for a token that is not a JWT mentions ingress keys', () => {
  expect(FAULTS.malformed).toContain('ingress keys are not accepted');
});

test.each([
  ['https://api.example/', ' than https://api.example/'],
  ['a"b', ''],
  ['ä', ''],
])('the audience %j is only named if it can stand in a header as it is', (audience, words) => {
  expect(refuseToken('audience', audience).facts.detail).toBe(`${FAULTS.audience}${words}.`);
  expect(refuseToken('type', audience).facts.detail).toBe(`${FAULTS.type}.`);
});

test.each(Object.values(FAULTS))('"%s" can stand in a header as it is', text => {
  // RFC 6750, section 3: no quotation marks, no backslash.
  expect(text).toMatch(/^[A-Z][\w ()-]+$/);
});
