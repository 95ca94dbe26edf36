import type { InspectedEvent } from '../../plane/inbox-reader.ts';
import { replayOf } from '../../plane/inbox-ref.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callForBuffers, type ScriptClient } from '../call.ts';
import { partKeys } from '../keys.ts';
import type { SlotOfPart } from './find-part.ts';

const ANSWERS = readNamedScript(new URL('answers.lua', import.meta.url));
const LINE_END = 10;

/** The responses to failed attempts for an event and its replays, starting with the oldest. */
export async function readAnswers(
  redis: ScriptClient,
  { part, slot }: SlotOfPart,
  ref: string,
): Promise<InspectedEvent['responses']> {
  const call = { keys: partKeys(part), args: { slot, ref } };
  const [, ...values] = await callForBuffers(redis, ANSWERS, call);
  return values.map(value => {
    const text = value as Buffer;
    const line = text.indexOf(LINE_END);
    const head = text.subarray(0, line).toString();
    const replayId = replayOf(head);
    const attempt = head.slice(head.lastIndexOf(' ') + 1);
    const response = {
      attempt: Number.parseInt(attempt, 10),
      body: text.subarray(line + 1),
      truncated: attempt.endsWith('+'),
    };
    return replayId === undefined ? response : { replayId, ...response };
  });
}
