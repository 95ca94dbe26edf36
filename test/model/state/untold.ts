import { partName } from '../../../src/part/tokens/part-name.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import type { PartDump, WorldDump } from './world-dump.ts';

/** Tokens used by a part which have not been reported to its accounts yet. They are lost together with the part. */
export function untoldTokens({ part, meta }: PartDump, { hashes }: WorldDump): number {
  const untold = ([account = '', gen = '', ledger = '', total = '0']: readonly string[]) => {
    const reported = hashes.get(accountKeys(account).seen)?.[`${partName({ ...part, gen })}.${ledger}`] ?? '0';
    return Math.max(0, Number(total) - Number(reported));
  };
  const total = Number(meta.get('used') ?? 0) - Number(meta.get('base') ?? 0);
  const ended = (meta.get('owed') ?? '').split(';').slice(0, -1);
  const ledgers = [
    [meta.get('payer') ?? '', part.gen, meta.get('ledger') ?? '', String(total)],
    ...ended.map(text => text.split(' ')),
  ];
  return ledgers.reduce((sum, ledger) => sum + untold(ledger), 0);
}
