import { expect, test } from 'vitest';
import { scopesOf } from './scopes.ts';

test.each<[string, Record<string, unknown>, string[]]>([
  ['a string', { scope: 'openid waas:read' }, ['openid', 'waas:read']],
  ['a string with more spaces', { scope: ' a  b ' }, ['a', 'b']],
  ['a string of Microsoft Entra', { scp: 'waas:read waas:write' }, ['waas:read', 'waas:write']],
  ['a list of Okta', { scp: ['waas:read', 'waas:keys'] }, ['waas:read', 'waas:keys']],
  ['both claims', { scope: 'a', scp: ['b', 'a'] }, ['a', 'b']],
  ['the roles of a client of Microsoft Entra', { roles: ['waas:read'], idtyp: 'app' }, ['waas:read']],
  ['not the roles of a person', { roles: ['waas:read'], idtyp: 'user' }, []],
  ['not the roles of other providers', { roles: ['waas:read'] }, []],
  ['no scopes of a list with other values than strings', { scp: ['waas:read', 1] }, []],
  ['no scopes of an object', { scope: { 'waas:read': true } }, []],
  ['no scopes of a string with other spaces', { scope: 'waas:read\twaas:write' }, ['waas:read\twaas:write']],
  ['none', {}, []],
])('reads %s', (_, claims, scopes) => {
  expect([...scopesOf(claims)].toSorted()).toEqual(scopes.toSorted());
});
