import { expect, test } from 'vitest';
import { publicId } from '../../../core/ids/ids.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { registerLimitMetrics } from './limit-metrics.ts';
import type { LimitUse } from './limit-use.ts';

type Shares = ReturnType<LimitUse['sharesOf']>;

const id = (name: string) => publicId('Account', '', name);

test('the ten accounts that are closest to a limit have series for all of their limits', async () => {
  const registry = createRegistry();
  const shares = new Map<string, Shares>([
    ['idle', new Map([['streams', 0]])],
    ['unlimited', new Map()],
    ...Array.from({ length: 10 }, (_, n) => [`a-${n}`, new Map([['streams', 0.5 + n / 100]])] as const),
    [
      'full',
      new Map([
        ['streams', 0.01],
        ['blocks', 1],
      ]),
    ],
  ] as [string, Shares][]);
  const listedOnes: string[] = [];
  const sharesOf: LimitUse['sharesOf'] = ({ metadata }) => {
    listedOnes.push(metadata.name);
    return shares.get(metadata.name) ?? new Map();
  };
  const highestShareOf: LimitUse['highestShareOf'] = ({ metadata }) =>
    Math.max(0, ...(shares.get(metadata.name)?.values() ?? []));
  const spec = { plan: 'Free' as const, includedTokens: 0, owners: [] };
  const accounts = () => [...shares.keys()].map(name => ({ metadata: { name }, spec }));
  registerLimitMetrics(registry, { sharesOf, highestShareOf }, accounts);
  const series = async () => {
    const text = await registry.metrics();
    const found = text.matchAll(
      /^sluice_controller_account_limit_used_ratio\{account="(\w+)",limit="(\w+)"\} (\S+)$/gm,
    );
    return [...found].map(([, account, limit, value]) => `${account} ${limit} ${value}`);
  };
  const listed = await series();
  expect(listed).toHaveLength(11);
  expect(listedOnes).toEqual(['full', ...Array.from({ length: 9 }, (_, n) => `a-${9 - n}`)]);
  expect(listed).toEqual(expect.arrayContaining([`${id('full')} blocks 1`, `${id('full')} streams 0.01`]));
  // This is the eleventh account.
  expect(listed.join()).not.toContain(id('a-0'));
  shares.delete('full');
  expect(await series()).toHaveLength(10);
  expect((await series()).join()).not.toContain(id('full'));
});
