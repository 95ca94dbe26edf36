import { describe, expect, test } from 'vitest';
import type { Owner } from '../../api/owner.ts';
import type { Identity } from './identity.ts';
import { includesRole, mayActFor, mayActForAccount, ROLES, rolesOf } from './ownership.ts';

const ISSUER = 'https://login.example.com';
const ada: Identity = { issuer: ISSUER, subject: 'ada', groups: ['ops', 'dev'], client: 'portal', scopes: new Set() };
const owner = (fields: Partial<Owner>): Owner => ({ issuer: ISSUER, role: 'Owner', ...fields });

describe('an entry matches a caller', () => {
  test.each<[string, Partial<Owner>, boolean]>([
    ['the subject', { subject: 'ada' }, true],
    ['one of the groups', { group: 'dev' }, true],
    ['the client', { client: 'portal' }, true],
    ['another subject', { subject: 'eve' }, false],
    ['the subject in another case', { subject: 'Ada' }, false],
    ['the subject with a space', { subject: 'ada ' }, false],
    ['a prefix of the subject', { subject: 'ad' }, false],
    ['the subject as a group', { group: 'ada' }, false],
    ['the subject as a client', { client: 'ada' }, false],
    ['a group as a subject', { subject: 'ops' }, false],
    ['the client as a subject', { subject: 'portal' }, false],
    ['groups in one text', { group: 'ops,dev' }, false],
    ['an empty subject', { subject: '' }, false],
    ['the subject of another issuer', { subject: 'ada', issuer: 'https://evil.example' }, false],
    ['the subject of an issuer with a slash', { subject: 'ada', issuer: `${ISSUER}/` }, false],
    ['the subject of an issuer in upper case', { subject: 'ada', issuer: ISSUER.toUpperCase() }, false],
    ['a group of another issuer', { group: 'ops', issuer: 'https://evil.example' }, false],
    ['nobody', {}, false],
    ['two fields, both right', { subject: 'ada', group: 'ops' }, false],
    ['two fields, one right', { subject: 'eve', group: 'ops' }, false],
  ])('%s', (_, fields, meant) => {
    expect(rolesOf(ada, [owner(fields)])).toEqual(meant ? ['Owner'] : []);
  });

  test('letters that look alike, or are composed in another way, are others', () => {
    expect(rolesOf({ ...ada, subject: 'zo\u00eb' }, [owner({ subject: 'zoe\u0308' })])).toEqual([]);
  });

  test('never matches a caller without groups and client because of missing fields', () => {
    const eve: Identity = { issuer: ISSUER, subject: 'eve', groups: [], client: undefined, scopes: new Set() };
    const entries = [owner({ client: undefined }), owner({ group: undefined }), owner({ client: 'undefined' })];
    expect(rolesOf(eve, entries)).toEqual([]);
  });

  test('each role once, none of no list', () => {
    const admin = owner({ group: 'ops', role: 'Admin' });
    expect(rolesOf(ada, [admin, owner({ subject: 'ada' }), admin])).toEqual(['Admin', 'Owner']);
    expect(rolesOf(ada, undefined)).toEqual([]);
  });
});

test('an entry without a role means Admin', () => {
  expect(rolesOf(ada, [{ issuer: ISSUER, subject: 'ada' }])).toEqual(['Admin']);
});

test('each role includes itself and those below it', () => {
  const included = ROLES.map(role => ROLES.filter(needed => includesRole(role, needed)));
  expect(included).toEqual([['Owner', 'Admin', 'Viewer'], ['Admin', 'Viewer'], ['Viewer']]);
});

describe('the role for a workspace', () => {
  const workspace = (...owners: Owner[]) => ({ spec: { account: 'acme', owners } });
  const account = (name: string, ...owners: Owner[]) => ({ metadata: { name }, spec: { owners } });
  const admin = owner({ subject: 'ada', role: 'Admin' });

  test('nothing by default', () => {
    expect(mayActFor(ada, workspace(), undefined)).toBeUndefined();
    expect(mayActFor(ada, { spec: { account: 'acme' } }, account('acme'))).toBeUndefined();
  });

  test('uses the stronger role of both lists', () => {
    expect(mayActFor(ada, workspace(admin), undefined)).toBe('Admin');
    expect(mayActFor(ada, workspace(), account('acme', admin))).toBe('Admin');
    const viewer = owner({ subject: 'ada', role: 'Viewer' });
    expect(mayActFor(ada, workspace(viewer), undefined)).toBe('Viewer');
    expect(mayActFor(ada, workspace(viewer), account('acme', admin))).toBe('Admin');
    expect(mayActFor(ada, workspace(admin), account('acme', owner({ group: 'ops' })))).toBe('Owner');
    expect(mayActFor(ada, workspace(owner({ client: 'portal' })), account('acme', admin))).toBe('Owner');
  });

  test('nothing by the account of another workspace', () => {
    expect(mayActFor(ada, workspace(), account('other', owner({ subject: 'ada' })))).toBeUndefined();
  });

  test('the same for an account alone', () => {
    expect(mayActForAccount(ada, account('acme', admin))).toBe('Admin');
    expect(mayActForAccount(ada, account('acme', owner({ subject: 'eve' })))).toBeUndefined();
  });
});
