import type { LookupAddress } from 'node:dns';
import { expect, test } from 'vitest';
import { createNetworkPolicy } from '../../core/network.ts';
import { createNameLookup, type ResolveName } from './name-lookup.ts';

const policy = createNetworkPolicy(['127.0.0.2']);

function lookupWith(resolveName: ResolveName, all: boolean): Promise<unknown> {
  const lookup = createNameLookup(policy, resolveName);
  return new Promise(resolve => {
    lookup('partner.test', { all }, (error, address, family) =>
      resolve(error === null ? (family === undefined ? address : { address, family }) : error.code),
    );
  });
}

const answering =
  (...addresses: string[]): ResolveName =>
  (_name, _options, done) =>
    done(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

const failing: ResolveName = (_name, _options, done) =>
  done(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }), []);

test('only permitted addresses are left, in their order', async () => {
  const mixed = answering('10.0.0.1', '2606:4700::1111', '127.0.0.1', 'fe80::1%lo', '127.0.0.2', '::1');
  expect(await lookupWith(mixed, true)).toEqual([
    { address: '2606:4700::1111', family: 6 },
    { address: '127.0.0.2', family: 4 },
  ]);
  expect(await lookupWith(mixed, false)).toEqual({ address: '2606:4700::1111', family: 6 });
});

test('none left, none at all, and the resolver’s own error are told apart', async () => {
  expect(await lookupWith(answering('10.0.0.1', '::1'), true)).toBe('SLUICE_ADDRESS_REFUSED');
  expect(await lookupWith(answering(), true)).toBe('ENODATA');
  expect(await lookupWith(failing, true)).toBe('ENOTFOUND');
});

test('a name is asked for once by all who want it together, and anew afterwards', async () => {
  const asked: Parameters<ResolveName>[2][] = [];
  const lookup = createNameLookup(policy, (_name, _options, done) => asked.push(done));
  const answers: unknown[] = [];
  const ask = () => lookup('partner.test', { all: true }, (error, addresses) => answers.push(error ?? addresses));
  ask();
  ask();
  expect(asked).toHaveLength(1);
  asked[0]?.(null, [{ address: '127.0.0.2', family: 4 }]);
  expect(answers).toHaveLength(2);
  ask();
  expect(asked).toHaveLength(2);
});
