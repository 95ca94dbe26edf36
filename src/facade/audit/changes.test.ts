import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MOST_MEMBERS } from '../resources/workspaces/members.ts';
import { type Change, collectChanges, describeChange, noteChange } from './changes.ts';
import { createRedact } from './redaction.ts';

const plain = (text: string) => text;
const metadata = { name: 'shop', namespace: 'acme' };
const change = (before: object | undefined, after: object | undefined): Change => ({
  kind: 'Package',
  before: before && { metadata, spec: before },
  after: after && { metadata, spec: after },
});
const about = { kind: 'Package', namespace: 'acme', name: 'shop' };

test('a change has the fields that differ, before and after', () => {
  const changed = change({ key: 'a', archived: false }, { key: 'a', archived: true, name: 'b' });
  expect(describeChange(changed, plain)).toEqual({
    ...about,
    before: { archived: false },
    after: { archived: true, name: 'b' },
  });
  expect(describeChange(change({ key: 'a' }, { key: 'a' }), plain)).toBeUndefined();
});

test('an object that does not exist is null', () => {
  expect(describeChange(change(undefined, { key: 'a' }), plain)).toEqual({
    ...about,
    before: null,
    after: { key: 'a' },
  });
  expect(describeChange(change({ key: 'a' }, undefined), plain)).toEqual({
    ...about,
    before: { key: 'a' },
    after: null,
  });
});

test('of a list, only the items that differ are shown', () => {
  const many = Array.from({ length: 1_000 }, (_, n) => ({ name: `s${n}` }));
  const changed = change({ streams: many }, { streams: [...many.slice(1), { name: 'new' }] });
  expect(describeChange(changed, plain)).toMatchObject({
    before: { streams: [{ name: 's0' }] },
    after: { streams: [{ name: 'new' }] },
  });
});

test('all owners that were added are shown, even if there are as many as an account can have', () => {
  const owner = (n: number) => ({
    issuer: `https://login.example.com/${'i'.repeat(480)}`,
    subject: `s${n}`,
    role: 'Admin',
  });
  const owners = Array.from({ length: MOST_MEMBERS }, (_, n) => owner(n));
  const changed = change({ owners: [owner(-1)] }, { owners });
  expect(describeChange(changed, plain)).toEqual({ ...about, before: { owners: [owner(-1)] }, after: { owners } });
});

test('the new URL of an endpoint is shown, even if all of its fields are as long as possible', () => {
  const headers = Array.from({ length: 16 }, (_, n) => ({ name: `x-${n}`, valueSealed: `s2.${'a'.repeat(2_000)}` }));
  const secrets = Array.from({ length: 16 }, (_, n) => ({
    name: `x-${n}-${'n'.repeat(120)}`,
    valueFrom: { secretKeyRef: { name: 's'.repeat(253), key: 'k'.repeat(253) } },
  }));
  const retrySchedule = Array.from({ length: 16 }, () => '1h'.repeat(16));
  const endpoint = (host: string, more: object) => ({
    url: `https://${host}/${'p'.repeat(1_900)}`,
    retrySchedule,
    ...more,
  });
  const redact = createRedact(Buffer.alloc(32, 7));
  for (const fields of [{ headers }, { headers: secrets }]) {
    const changed = change(
      { endpoint: endpoint('partner.example.com', fields) },
      { endpoint: endpoint('thief.example.com', fields) },
    );
    expect(describeChange(changed, redact)).toMatchObject({
      before: { endpoint: { url: 'https://partner.example.com' } },
      after: { endpoint: { url: 'https://thief.example.com' } },
    });
  }
});

test('changes belong to the call that makes them, also if it fails', async () => {
  const [first, second]: Change[][] = [[], []];
  const one = change(undefined, { key: '1' });
  const two = change(undefined, { key: '2' });
  noteChange(change(undefined, { key: 'outside of a call' }));
  await Promise.all([
    collectChanges(first as Change[], async () => {
      await delay(2);
      noteChange(one);
    }),
    collectChanges(second as Change[], async () => {
      await delay(1);
      noteChange(two);
      throw new Error('refused');
    }).catch(() => undefined),
  ]);
  expect([first, second]).toEqual([[one], [two]]);
});
