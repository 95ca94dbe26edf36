import { describe, expect, test } from 'vitest';
import { clientOf } from './client-rules.ts';

type Claims = Readonly<Record<string, unknown>>;

const KEYCLOAK = {
  sub: '0b7c',
  azp: 'Portal',
  client_id: 'Portal',
  preferred_username: 'service-account-portal',
  clientHost: '10.0.0.1',
  clientAddress: '10.0.0.1',
};

describe('a token represents a client', () => {
  test.each<[string, Claims, string]>([
    ['RFC 9068', { sub: 'portal', client_id: 'portal' }, 'portal'],
    ['OpenID Connect', { sub: 'portal', azp: 'portal' }, 'portal'],
    ['Okta', { sub: '0oa1', cid: '0oa1', scp: ['waas:read'] }, '0oa1'],
    ['Auth0', { sub: 'x7@clients', azp: 'x7', gty: 'client-credentials' }, 'x7'],
    ['Microsoft Entra v2', { sub: 'b1', azp: 'a1', oid: 'b1', idtyp: 'app' }, 'a1'],
    ['Microsoft Entra v1', { sub: 'b1', appid: 'a1', oid: 'b1', idtyp: 'app' }, 'a1'],
    ['Keycloak', KEYCLOAK, 'Portal'],
    ['Keycloak before 22', { ...KEYCLOAK, client_id: undefined, clientId: 'Portal' }, 'Portal'],
  ])('%s', (_, claims, client) => {
    expect(clientOf(claims, [])).toBe(client);
  });
});

describe('a token represents a person who uses a client', () => {
  const person = { sub: 'ada', client_id: 'console', azp: 'console' };

  test.each<[string, Claims]>([
    ['RFC 9068', person],
    ['a person whose user name is the id of the client, at Okta', { sub: '0oa1', cid: '0oa1', uid: '00u1' }],
    [
      'a person whose user name is the id of the client, with a time of sign-in',
      { ...person, sub: 'console', auth_time: 1 },
    ],
    ['a person whose user name is the id of the client, with a session', { ...person, sub: 'console', sid: 's' }],
    ['Microsoft Entra', { ...person, idtyp: 'user' }],
    ['Microsoft Entra without idtyp', { ...person, oid: 'ada' }],
    ['a person called like a client of Auth0', { ...person, sub: 'console@clients' }],
    ['a person with another flow of Auth0', { ...person, sub: 'console@clients', gty: 'password' }],
    ['another client of Auth0', { ...person, sub: 'other@clients', gty: 'client-credentials' }],
    ['a person who registered as a service account', { ...person, preferred_username: 'service-account-console' }],
    ['a service account of another client', { ...KEYCLOAK, preferred_username: 'service-account-console' }],
    ['a service account without its client_id', { ...KEYCLOAK, client_id: undefined }],
    ['a service account without its host', { ...KEYCLOAK, clientHost: undefined }],
    ['a service account without its address', { ...KEYCLOAK, clientAddress: '' }],
    ['claims that are not text', { sub: ['portal'], client_id: ['portal'], idtyp: ['app'], gty: true }],
    ['no client', { sub: 'ada', idtyp: 'app', gty: 'client-credentials' }],
    ['an empty client', { sub: '', client_id: '', azp: '' }],
  ])('%s', (_, claims) => {
    expect(clientOf(claims, [])).toBeUndefined();
  });
});

describe('a configured claim', () => {
  const configured = [
    { name: 'token_use', value: 'machine' },
    { name: 'machine', value: 'true' },
    { name: 'sub', value: '{client}@clients' },
  ];

  test.each<[string, Claims, string | undefined]>([
    ['is enough', { sub: '1', azp: 'portal', token_use: 'machine' }, 'portal'],
    ['may be a boolean', { sub: '1', azp: 'portal', machine: true }, 'portal'],
    ['may contain the id of the client', { sub: 'portal@clients', azp: 'portal' }, 'portal'],
    ['is compared byte by byte', { sub: '1', azp: 'portal', token_use: 'Machine' }, undefined],
    ['does not match a list', { sub: '1', azp: 'portal', token_use: ['machine'] }, undefined],
    ['does not match the id of another client', { sub: 'other@clients', azp: 'portal' }, undefined],
    ['does not replace the id of the client', { sub: '1', token_use: 'machine' }, undefined],
    ['does not match inherited properties of objects', { sub: '1', azp: 'portal', machine: false }, undefined],
  ])('%s', (_, claims, client) => {
    expect(clientOf(claims, configured)).toBe(client);
  });

  test('uses the id of the client unchanged', () => {
    const [name, value] = ['sub', 'id:{client}'];
    expect(clientOf({ sub: "id:$&$'", azp: "$&$'" }, [{ name, value }])).toBe("$&$'");
    expect(clientOf({ sub: 'x', azp: 'portal' }, [{ name: 'toString', value: 'x' }])).toBeUndefined();
  });
});
