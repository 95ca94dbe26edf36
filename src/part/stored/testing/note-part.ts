import type { ScriptClient } from '../../call.ts';
import type { Part } from '../../keys.ts';
import { createLedgerCalls } from '../../tokens/ledger-calls.ts';
import type { Noted, NoteStored } from '../stored-bytes.ts';

/** Records what the part reports. If the part does not exist any more, this returns undefined. */
export async function notePart(
  client: ScriptClient,
  note: NoteStored,
  part: Part,
  last?: Noted,
): Promise<Noted | undefined> {
  const reported = await createLedgerCalls(client).report(part);
  return reported && note(part, { payer: reported.payer, bytes: reported.counts.bytes }, last);
}
